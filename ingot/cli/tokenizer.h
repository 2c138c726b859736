#pragma once

namespace CLI {
class App;
}

namespace ingot {

// `ingot tokenizer train`, a subcommand of `parent`.
void add_tokenizer_train(CLI::App& parent);

}  // namespace ingot
