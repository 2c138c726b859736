#pragma once

#include <vector>

namespace CLI {
class App;
}

namespace ingot {

// The verbs of the program. Each entry adds its subcommand, with options and an example, to the
// program; the subcommand's callback does the work and throws Error.
using AddCommand = void (*)(CLI::App& program);
const std::vector<AddCommand>& commands();

void add_train_command(CLI::App& program);
void add_plan_command(CLI::App& program);
void add_generate_command(CLI::App& program);
void add_chat_command(CLI::App& program);
void add_serve_command(CLI::App& program);
void add_convert_command(CLI::App& program);
void add_quantize_command(CLI::App& program);
void add_merge_command(CLI::App& program);
void add_ckpt_command(CLI::App& program);
void add_runs_command(CLI::App& program);
void add_replay_command(CLI::App& program);
void add_bench_command(CLI::App& program);
void add_doctor_command(CLI::App& program);
void add_eval_command(CLI::App& program);
void add_data_command(CLI::App& program);
void add_optim_command(CLI::App& program);
void add_selftest_command(CLI::App& program);
void add_tokenizer_command(CLI::App& program);
void add_sweep_command(CLI::App& program);
void add_inspect_command(CLI::App& program);

}  // namespace ingot
