#include <fmt/format.h>

#include <iostream>

#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/cli/bench.h"
#include "ingot/text/load_tokenizer.h"
#include "ingot/text/train_bpe.h"

namespace ingot {
namespace {

void print_rates(const TokenizerBench& arguments, double seconds, int64_t tokens, size_t bytes) {
  if (arguments.json) {
    const nlohmann::ordered_json out = {{"seconds", seconds}, {"tokens", tokens}, {"bytes", bytes}};
    std::cout << out.dump() << '\n';
    return;
  }
  fmt::print("{} tokens of {} bytes in {:.4f} s: {:.1f} MB/s\n", tokens, bytes, seconds,
             1e-6 * static_cast<double>(bytes) / seconds);
}

}  // namespace

void bench_tokenizer_encode(const TokenizerBench& arguments) {
  const Tokenizer tokenizer = load_tokenizer(arguments.tokenizer);
  const std::string text = read_file(arguments.files.at(0));
  int64_t tokens = 0;
  const double seconds = seconds_of([&] {
    for (size_t at = 0; at <= text.size();) {
      const size_t end = arguments.whole ? text.size() : std::min(text.find('\n', at), text.size());
      tokens += static_cast<int64_t>(
          tokenizer.encode(std::string_view(text).substr(at, end - at)).size());
      at = end + 1;
    }
  });
  print_rates(arguments, seconds, tokens, text.size());
}

void bench_tokenizer_train(const TokenizerBench& arguments) {
  BpeTraining settings;
  settings.vocabulary = arguments.vocabulary;
  settings.least_count = 1;
  settings.all_bytes = false;
  size_t bytes = 0;
  int64_t tokens = 0;
  const double seconds = seconds_of([&] {
    BpeTrainer trainer(settings);
    for (const std::string& path : arguments.files) {
      const std::string text = read_file(path);
      bytes += text.size();
      trainer.add(text);
    }
    tokens = static_cast<int64_t>(trainer.train().tokenizer.tokens.size());
  });
  print_rates(arguments, seconds, tokens, bytes);
}

}  // namespace ingot
