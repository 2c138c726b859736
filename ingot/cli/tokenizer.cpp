#include "ingot/cli/tokenizer.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/base/progress.h"
#include "ingot/base/signals.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/tokenizer_diff.h"
#include "ingot/text/load_tokenizer.h"
#include "ingot/text/stream_decoder.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

void print(const Json& value) {
  std::cout << value.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

std::string_view text_in_file(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

struct EncodeArguments {
  std::string tokenizer;
  std::string file;
  std::string text;
  std::string out;
  int64_t bits = 32;
  bool lines = false;
  bool tokens = false;
  bool json = false;
  EncodeOptions options;
};

// Ids as unsigned little-endian integers, appended to a file.
void append_ids(AtomicFile& file, std::span<const TokenId> ids, int64_t bits) {
  std::string bytes;
  for (const TokenId id : ids) {
    check(bits == 32 || id < 1 << 16, ErrorKind::config, "tokenizer encode: token ", id,
          " does not fit 16 bits; use --bits 32");
    for (int64_t shift = 0; shift < bits; shift += 8) {
      bytes += static_cast<char>(static_cast<uint32_t>(id) >> shift);
    }
  }
  file.write(bytes);
}

void encode_to_file(const EncodeArguments& arguments, const Tokenizer& tokenizer,
                    std::string_view text) {
  AtomicFile file(arguments.out);
  const StopSignals signals;
  Progress progress("encode", 0, "tokens");
  int64_t count = 0;
  tokenizer.encode(text, arguments.options, [&](std::span<const TokenId> ids) {
    check(!stop_requested(), ErrorKind::config, "tokenizer encode: stopped; nothing was written");
    append_ids(file, ids, arguments.bits);
    count += static_cast<int64_t>(ids.size());
    progress.set(count);
  });
  file.commit();
  progress.finish();
  if (arguments.json) {
    print({{"file", arguments.out},
           {"tokens", count},
           {"bytes", text.size()},
           {"hash", tokenizer.hash()}});
  } else {
    std::cout << fmt::format("{}: {} tokens of {} bytes\n", arguments.out, count, text.size());
  }
}

void print_ids(const EncodeArguments& arguments, const Tokenizer& tokenizer,
               std::string_view text) {
  if (arguments.json) {
    const TokenIds ids = tokenizer.encode(text, arguments.options);
    Json out = {{"ids", ids}};
    if (arguments.tokens) {
      for (const TokenId id : ids) {
        out["tokens"].push_back(tokenizer.token(id));
      }
    }
    print(out);
    return;
  }
  bool first = true;
  tokenizer.encode(text, arguments.options, [&](std::span<const TokenId> ids) {
    std::string line;
    for (const TokenId id : ids) {
      line += std::exchange(first, false) ? "" : " ";
      line += arguments.tokens ? tokenizer.token(id) : std::to_string(id);
    }
    std::cout << line;
  });
  std::cout << '\n';
}

void encode(const EncodeArguments& arguments) {
  const Tokenizer tokenizer = load_tokenizer(arguments.tokenizer);
  std::string held = arguments.text;
  std::optional<MappedFile> mapped;
  if (!arguments.file.empty() && arguments.file != "-") {
    mapped.emplace(arguments.file);
  } else if (arguments.file == "-") {
    held = read_file("/dev/stdin");
  }
  std::string_view text = mapped ? text_in_file(*mapped) : std::string_view(held);
  if (!arguments.out.empty()) {
    encode_to_file(arguments, tokenizer, text);
    return;
  }
  if (!arguments.lines) {
    print_ids(arguments, tokenizer, text);
    return;
  }
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    print_ids(arguments, tokenizer, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void add_encode(CLI::App& parent) {
  CLI::App* verb = parent.add_subcommand("encode", "Text to token ids.");
  verb->footer("Example: ingot tokenizer encode models/qwen3 --text \"Hello, world\" --tokens");
  auto arguments = std::make_shared<EncodeArguments>();
  verb->add_option("tokenizer", arguments->tokenizer, "file or folder")->required();
  verb->add_option("file", arguments->file, "text file; - reads standard input");
  verb->add_option("--text", arguments->text, "the text itself");
  verb->add_flag("--lines", arguments->lines, "every line is a text of its own");
  verb->add_flag("--tokens", arguments->tokens, "print the tokens' spellings");
  verb->add_flag("--add-special", arguments->options.add_special,
                 "with the tokens that the model wants around a text");
  verb->add_flag("--parse-special", arguments->options.parse_special,
                 "special tokens spelled in the text are these tokens; otherwise they are text");
  verb->add_option("--out", arguments->out, "write the ids there, as binary integers");
  verb->add_option("--bits", arguments->bits, "of each of them: 16 or 32")
      ->check(CLI::IsMember({16, 32}))
      ->capture_default_str();
  verb->add_flag("--json", arguments->json, "print JSON");
  verb->callback([arguments] { encode(*arguments); });
}

struct DecodeArguments {
  std::string tokenizer;
  std::vector<TokenId> ids;
  bool special = false;
  bool json = false;
};

void decode(const DecodeArguments& arguments) {
  const Tokenizer tokenizer = load_tokenizer(arguments.tokenizer);
  const DecodeOptions options = {.skip_special = !arguments.special};
  TokenIds ids = arguments.ids;
  if (ids.empty()) {
    for (int64_t id = 0; std::cin >> id;) {
      check(id >= 0 && id <= INT32_MAX, ErrorKind::config, "tokenizer decode: ", id,
            " is no token id");
      ids.push_back(static_cast<TokenId>(id));
    }
    check(std::cin.eof(), ErrorKind::format,
          "tokenizer decode: standard input holds what is no token id; give numbers");
  }
  if (arguments.json) {
    print({{"text", tokenizer.decode(ids, options)}});
    return;
  }
  StreamDecoder decoder(tokenizer, options);
  for (const TokenId id : ids) {
    std::cout << decoder.add(id);
  }
  std::cout << decoder.finish() << '\n';
}

void add_decode(CLI::App& parent) {
  CLI::App* verb = parent.add_subcommand("decode", "Token ids to text.");
  verb->footer("Example: ingot tokenizer decode models/qwen3 9707 11 1879");
  auto arguments = std::make_shared<DecodeArguments>();
  verb->add_option("tokenizer", arguments->tokenizer, "file or folder")->required();
  verb->add_option("ids", arguments->ids,
                   "token ids; without any they are read from standard input");
  verb->add_flag("--special", arguments->special, "write special tokens too");
  verb->add_flag("--json", arguments->json, "print JSON");
  verb->callback([arguments] { decode(*arguments); });
}

void add_inspect(CLI::App& parent) {
  CLI::App* verb = parent.add_subcommand("inspect", "What a tokenizer is made of.");
  verb->footer("Example: ingot tokenizer inspect models/qwen3");
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  verb->add_option("tokenizer", *path, "file or folder")->required();
  verb->add_flag("--json", *json, "print JSON");
  verb->callback([path, json] {
    const Tokenizer tokenizer = load_tokenizer(*path);
    std::cout << (*json ? inspected_json(tokenizer) : inspected_text(tokenizer));
  });
}

void add_diff(CLI::App& parent) {
  CLI::App* verb = parent.add_subcommand("diff", "Where two tokenizers differ, token by token.");
  verb->footer("Example: ingot tokenizer diff base/tokenizer.json tuned/tokenizer.json");
  auto paths = std::make_shared<std::array<std::string, 2>>();
  auto limit = std::make_shared<int64_t>(20);
  auto json = std::make_shared<bool>(false);
  verb->add_option("a", (*paths)[0], "file or folder")->required();
  verb->add_option("b", (*paths)[1], "file or folder")->required();
  verb->add_option("--limit", *limit, "differing tokens to name of each kind; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_flag("--json", *json, "print JSON");
  verb->callback([paths, limit, json] {
    const TokenizerDiff found =
        diff_tokenizers(load_tokenizer((*paths)[0]), load_tokenizer((*paths)[1]));
    std::cout << (*json ? diff_json(found) : diff_text(found, *limit));
  });
}

}  // namespace

void add_tokenizer_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand(
      "tokenizer", "Train tokenizers, encode and decode with them, look into them, compare them.");
  verb->footer("Example: ingot tokenizer encode models/qwen3 --text \"Hello, world\"");
  verb->require_subcommand(1);
  add_tokenizer_train(*verb);
  add_encode(*verb);
  add_decode(*verb);
  add_inspect(*verb);
  add_diff(*verb);
}

}  // namespace ingot
