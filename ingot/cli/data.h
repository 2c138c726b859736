#pragma once

namespace CLI {
class App;
}

namespace ingot {

// The subcommands of `ingot data`.
void add_data_show(CLI::App& verb);
void add_data_tokenize(CLI::App& verb);
void add_data_stats(CLI::App& verb);
void add_data_split(CLI::App& verb);
void add_data_convert(CLI::App& verb);

}  // namespace ingot
