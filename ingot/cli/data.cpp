#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/cli/commands.h"
#include "ingot/text/chat_mask.h"

namespace ingot {
namespace {

struct ShowOptions {
  std::string file, model;
  int64_t row = 1;
  std::vector<std::string> roles = {"assistant"};
  bool json = false;
};

// Line `row`, counted from 1, of a file of lines.
std::string_view line_of(std::string_view text, int64_t row, const std::string& file) {
  check(row >= 1, ErrorKind::config, "--row ", row, ": rows count from 1");
  int64_t lines = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (++lines == row) {
      return text.substr(0, end);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  throw Error(ErrorKind::format,
              concat(file, ": row ", row, ": the file has ", lines, " rows; name one of them"));
}

nlohmann::ordered_json to_json(const TrainingText& text) {
  nlohmann::ordered_json spans = nlohmann::ordered_json::array();
  for (size_t i = 0; i < text.learnt.size(); ++i) {
    spans.push_back(
        {{"begin", text.learnt[i].begin}, {"end", text.learnt[i].end}, {"message", text.turns[i]}});
  }
  return {{"text", text.text}, {"learnt", spans}};
}

void print(const std::vector<TrainingText>& texts, const ShowOptions& options) {
  const Colours colours = isatty(STDOUT_FILENO) != 0 ? Colours::terminal : Colours::none;
  size_t learnt = 0;
  size_t bytes = 0;
  for (const TrainingText& text : texts) {
    std::cout << shown(text, colours) << (text.text.ends_with('\n') ? "" : "\n");
    bytes += text.text.size();
    for (const Span& span : text.learnt) {
      learnt += span.end - span.begin;
    }
  }
  fmt::print(
      stderr, "{} row {}: {} of {} bytes are learnt{}\n", options.file, options.row, learnt, bytes,
      texts.size() == 1
          ? ""
          : fmt::format(", in {} texts, as the template rewrites earlier turns", texts.size()));
}

void show(const ShowOptions& options) {
  const MappedFile file(options.file);
  const std::string_view all(reinterpret_cast<const char*>(file.bytes().data()),
                             file.bytes().size());
  const std::string name = concat(options.file, ":", options.row);
  const Conversation conversation =
      parse_conversation(line_of(all, options.row, options.file), name);
  MaskOptions mask;
  mask.roles = options.roles;
  const ChatTemplate chat = ChatTemplate::load(options.model);
  std::vector<TrainingText> texts;
  try {
    texts = training_texts(chat, conversation, mask);
  } catch (Error& error) {
    throw error.within(concat("in ", name));
  }
  if (!options.json) {
    return print(texts, options);
  }
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const TrainingText& text : texts) {
    out.push_back(to_json(text));
  }
  std::cout << out.dump(2) << '\n';
}

}  // namespace

void add_data_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("data", "Look at training data.");
  verb->require_subcommand(1);
  CLI::App* sub = verb->add_subcommand(
      "show",
      "One conversation of a JSONL file as the model's template renders it; what training "
      "learns is green, or between « and ».");
  sub->footer("Example: ingot data show chats.jsonl --model models/qwen3 --row 7");
  auto options = std::make_shared<ShowOptions>();
  sub->add_option("file", options->file, "a file with a conversation a line: {\"messages\": [...]}")
      ->required();
  sub->add_option("--model", options->model, "a model folder with a chat template")->required();
  sub->add_option("--row", options->row, "which line, counted from 1")->capture_default_str();
  sub->add_option("--roles", options->roles, "whose turns are learnt")
      ->delimiter(',')
      ->capture_default_str();
  sub->add_flag("--json", options->json, "print JSON: texts and byte ranges");
  sub->callback([options] { show(*options); });
}

}  // namespace ingot
