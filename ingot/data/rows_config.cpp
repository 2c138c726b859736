#include "ingot/data/rows_config.h"

namespace ingot {

TokenizeOptions tokenize_options(const RowsConfig& config) {
  TokenizeOptions out;
  out.read.rows.format = config.format;
  out.read.rows.separator = config.separator;
  out.read.layout = config.layout;
  out.read.policy = config.policy == "drop" ? RowPolicy::drop : RowPolicy::error;
  out.read.roles.order = config.order == "any" ? RoleOrder::any : RoleOrder::strict;
  out.duplicates = config.duplicates == "drop"    ? Duplicates::drop
                   : config.duplicates == "error" ? Duplicates::error
                                                  : Duplicates::keep;
  return out;
}

RenderOptions render_options(const RowsConfig& config, const Tokenizer& tokenizer, uint64_t seed) {
  RenderOptions out;
  out.learn = config.learn == "all" ? Learn::all : Learn::answers;
  out.roles = config.roles;
  if (config.fim_rate > 0) {
    out.fim = {config.fim_rate, config.fim_spm_rate, seed, fim_tokens(tokenizer)};
  }
  return out;
}

TokenRowsOptions token_rows_options(const RowsConfig& config, int64_t sequence) {
  TokenRowsOptions out;
  out.sequence = sequence;
  out.long_rows = long_rows_named(config.long_rows);
  out.packing = config.packing == "none" ? Packing::none : Packing::best_fit;
  return out;
}

}  // namespace ingot
