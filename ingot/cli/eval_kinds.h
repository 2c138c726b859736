#pragma once

namespace CLI {
class App;
}

namespace ingot {

// Evaluations of `ingot eval` that no task file describes.
void add_eval_needle(CLI::App& verb);
void add_eval_winrate(CLI::App& verb);

}  // namespace ingot
