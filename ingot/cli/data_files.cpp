#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "ingot/base/files.h"
#include "ingot/base/log.h"
#include "ingot/cli/data.h"
#include "ingot/data/example_reader.h"
#include "ingot/data/token_rows.h"

namespace ingot {
namespace {

struct FileOptions {
  std::vector<std::string> files;
  std::string layout = "auto", policy = "error", to = "messages", out, held_out;
  double fraction = 0.05;
  int64_t seed = 0;
};

ReadOptions read_options(const FileOptions& options) {
  ReadOptions out;
  out.layout = options.layout;
  out.policy = options.policy == "drop" ? RowPolicy::drop : RowPolicy::error;
  return out;
}

void say(const RowCounts& counts) {
  if (counts.all_dropped() > 0) {
    log_warn(counts.text());
  }
}

// f(example) for every example of the files.
template <class F>
RowCounts each_example(const FileOptions& options, const F& f) {
  RowCounts counts;
  for (const std::string& file : options.files) {
    ExampleReader reader(file, read_options(options));
    std::vector<Example> block;
    while (reader.next(block)) {
      for (const Example& example : block) {
        f(example);
      }
    }
    counts.add(reader.counts());
  }
  return counts;
}

void convert(const FileOptions& options) {
  const auto layout = layout_named(options.to);
  check(layout.has_value(), ErrorKind::config, "--to: there is no layout '", options.to,
        "'; it is text, completion, alpaca, sharegpt, messages, preference, label or ranked");
  AtomicFile out(options.out);
  int64_t rows = 0;
  const RowCounts counts = each_example(options, [&](const Example& example) {
    out.write(json_of(row_of(example, *layout)) + "\n");
    ++rows;
  });
  out.commit();
  say(counts);
  fmt::print("{} rows in {}\n", rows, options.out);
}

// Lines of JSONL, each to one of two files by the hash of what it says.
void split(const FileOptions& options) {
  check(options.out != options.held_out, ErrorKind::config,
        "--out and --held-out are one file: ", options.out, "; name two");
  AtomicFile training(options.out);
  AtomicFile held_out(options.held_out);
  int64_t rows = 0, held = 0;
  const RowCounts counts = each_example(options, [&](const Example& example) {
    const Layout layout = example.kind == ExampleKind::text     ? Layout::text
                          : example.kind == ExampleKind::pair   ? Layout::preference
                          : example.kind == ExampleKind::label  ? Layout::label
                          : example.kind == ExampleKind::ranked ? Layout::ranked
                          : example.plain                       ? Layout::completion
                                                                : Layout::messages;
    const bool is_held =
        is_held_out(content_hash(example), options.fraction, static_cast<uint64_t>(options.seed));
    (is_held ? held_out : training).write(json_of(row_of(example, layout)) + "\n");
    ++(is_held ? held : rows);
  });
  training.commit();
  held_out.commit();
  say(counts);
  fmt::print("{} rows in {}, {} in {}\n", rows, options.out, held, options.held_out);
}

void add_reading(CLI::App& sub, FileOptions& options) {
  sub.add_option("files", options.files, "files of rows, see docs/data.md")->required();
  sub.add_option("--layout", options.layout, "of the rows (default: told by their keys)");
  sub.add_option("--policy", options.policy, "of a row that cannot be used")
      ->check(CLI::IsMember({"error", "drop"}))
      ->capture_default_str();
}

}  // namespace

void add_data_convert(CLI::App& verb) {
  CLI::App* sub = verb.add_subcommand("convert", "Writes rows of any layout as JSONL of another.");
  sub->footer("Example: ingot data convert alpaca.json --to messages --out chats.jsonl");
  auto options = std::make_shared<FileOptions>();
  add_reading(*sub, *options);
  sub->add_option("--to", options->to, "layout to write")->capture_default_str();
  sub->add_option("--out", options->out, "file to write")->required();
  sub->callback([options] { convert(*options); });
}

void add_data_split(CLI::App& verb) {
  CLI::App* sub = verb.add_subcommand(
      "split",
      "Divides rows into those to train on and those to hold out, by a hash of what they "
      "say: the same rows whatever stands around them, and equal rows on one side.");
  sub->footer(
      "Example: ingot data split chats.jsonl --fraction 0.1 --out train.jsonl --held-out "
      "held.jsonl");
  auto options = std::make_shared<FileOptions>();
  add_reading(*sub, *options);
  sub->add_option("--fraction", options->fraction, "share to hold out")
      ->check(CLI::Range(0.0, 1.0));
  sub->add_option("--seed", options->seed, "another one divides otherwise");
  sub->add_option("--out", options->out, "file of the rows to train on")->required();
  sub->add_option("--held-out", options->held_out, "file of the rows to hold out")->required();
  sub->callback([options] { split(*options); });
}

}  // namespace ingot
