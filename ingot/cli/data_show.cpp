#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "ingot/base/error.h"
#include "ingot/base/json_library.h"
#include "ingot/cli/data.h"
#include "ingot/data/example_reader.h"
#include "ingot/text/chat_mask.h"

namespace ingot {
namespace {

struct ShowOptions {
  std::string file, model;
  std::string layout = "auto";
  int64_t row = 1;
  std::vector<std::string> roles = {"assistant"};
  bool json = false;
};

struct Found {
  std::vector<Example> examples;
  std::string description;  // "jsonl: messages"
};

// The examples of the row that is number `row`, counted from 1.
Found found_row(const ShowOptions& options) {
  check(options.row >= 1, ErrorKind::config, "--row ", options.row, ": rows count from 1");
  RowReader reader(options.file);
  std::vector<RawRow> block;
  int64_t before = 0;
  while (reader.next(block)) {
    const int64_t at = options.row - before - 1;
    before += static_cast<int64_t>(block.size());
    if (options.row > before) {
      continue;
    }
    const RawRow& raw = block[static_cast<size_t>(at)];
    const RowPlace place{options.file, raw.line};
    const jinja::Value value = reader.value(raw);
    const auto layout =
        options.layout == "auto" ? layout_of(*value.mapping()) : layout_named(options.layout);
    check(layout.has_value(), ErrorKind::format, place.text(),
          ": no known layout: its keys are none that Ingot knows; see docs/data.md, or name the "
          "layout with --layout");
    return {examples_of(value, *layout, place), concat(reader.describe(), ": ", name(*layout))};
  }
  throw Error(ErrorKind::format, concat(options.file, ": row ", options.row, ": the file has ",
                                        before, " rows; name one of them"));
}

// A text, or a prompt and a completion that are joined as they are.
TrainingText plain_text(const Example& example) {
  TrainingText out;
  if (example.kind == ExampleKind::text) {
    out.text = example.text;
    out.learnt = {{0, out.text.size()}};
    out.turns = {0};
    return out;
  }
  for (size_t i = 0; i < example.conversation.messages.size(); ++i) {
    const Message& message = example.conversation.messages[i];
    const jinja::Value* content = message.fields.find("content");
    const size_t begin = out.text.size();
    out.text += content == nullptr || content->text() == nullptr ? "" : *content->text();
    if (message.train.value_or(role_of(message) == "assistant")) {
      out.learnt.push_back({begin, out.text.size()});
      out.turns.push_back(i);
    }
  }
  return out;
}

// What is learnt of an example, a chat for each answer of a pair, a label or a ranking.
std::vector<TrainingText> texts_of(const Example& example, const ShowOptions& options) {
  if (!example.answers.empty()) {
    std::vector<TrainingText> out;
    for (size_t i = 0; i < example.answers.size(); ++i) {
      for (TrainingText& text : texts_of(with_answer(example, i), options)) {
        out.push_back(std::move(text));
      }
    }
    return out;
  }
  if (example.kind == ExampleKind::text || example.plain) {
    return {plain_text(example)};
  }
  check(!options.model.empty(), ErrorKind::config, example.place.text(),
        ": a conversation is shown as a model's template renders it; name the model with --model");
  MaskOptions mask;
  mask.roles = options.roles;
  try {
    return training_texts(ChatTemplate::load(options.model), example.conversation, mask);
  } catch (Error& error) {
    throw error.within(concat("in ", example.place.text()));
  }
}

nlohmann::ordered_json to_json(const TrainingText& text) {
  nlohmann::ordered_json spans = nlohmann::ordered_json::array();
  for (size_t i = 0; i < text.learnt.size(); ++i) {
    spans.push_back(
        {{"begin", text.learnt[i].begin}, {"end", text.learnt[i].end}, {"message", text.turns[i]}});
  }
  return {{"text", text.text}, {"learnt", spans}};
}

void print(const std::vector<TrainingText>& texts, const Found& found, const ShowOptions& options) {
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
  const bool answers = !found.examples.front().answers.empty();
  fmt::print(
      stderr, "{} row {}: {} of {} bytes are learnt ({}{})\n", options.file, options.row, learnt,
      bytes, found.description,
      texts.size() == 1 ? ""
      : answers         ? fmt::format(", a {} of {} answers", name(found.examples.front().kind),
                                      found.examples.front().answers.size())
      : found.examples.size() > 1
          ? fmt::format(", {} conversations", found.examples.size())
          : fmt::format(", in {} texts, as the template rewrites earlier turns", texts.size()));
}

void show_rows(const ShowOptions& options) {
  const Found found = found_row(options);
  check(!found.examples.empty(), ErrorKind::format, options.file, ": row ", options.row,
        " holds no conversation; show another one");
  std::vector<TrainingText> texts;
  for (const Example& example : found.examples) {
    for (TrainingText& text : texts_of(example, options)) {
      texts.push_back(std::move(text));
    }
  }
  if (!options.json) {
    return print(texts, found, options);
  }
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const TrainingText& text : texts) {
    out.push_back(to_json(text));
  }
  std::cout << out.dump(2) << '\n';
}

}  // namespace

void add_data_show(CLI::App& verb) {
  CLI::App* sub = verb.add_subcommand(
      "show",
      "One row of a file of any layout as training sees it, a conversation as the model's template "
      "renders it; what training learns is green, or between « and ».");
  sub->footer("Example: ingot data show chats.jsonl --model models/qwen3 --row 7");
  auto options = std::make_shared<ShowOptions>();
  sub->add_option("file", options->file, "a file of rows, see docs/data.md")->required();
  sub->add_option("--model", options->model, "a model folder with a chat template");
  sub->add_option("--layout", options->layout, "of the row (default: told by its keys)");
  sub->add_option("--row", options->row, "which row, counted from 1")->capture_default_str();
  sub->add_option("--roles", options->roles, "whose turns are learnt")
      ->delimiter(',')
      ->capture_default_str();
  sub->add_flag("--json", options->json, "print JSON: texts and byte ranges");
  sub->callback([options] { show_rows(*options); });
}

}  // namespace ingot
