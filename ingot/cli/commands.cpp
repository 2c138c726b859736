#include "ingot/cli/commands.h"

namespace ingot {

const std::vector<AddCommand>& commands() {
  static const std::vector<AddCommand> table = {
      add_train_command,    add_plan_command,     add_generate_command, add_chat_command,
      add_serve_command,    add_data_command,     add_eval_command,     add_tokenizer_command,
      add_convert_command,  add_quantize_command, add_merge_command,    add_ckpt_command,
      add_replay_command,   add_runs_command,     add_optim_command,    add_bench_command,
      add_selftest_command, add_doctor_command,   add_sweep_command,    add_inspect_command,
  };
  return table;
}

}  // namespace ingot
