#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <iostream>
#include <optional>

#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/encoder_session.h"
#include "ingot/cli/run_answers.h"
#include "ingot/cli/run_data.h"
#include "ingot/cli/run_folder.h"
#include "ingot/cli/session.h"
#include "ingot/train/journal.h"
#include "ingot/train/saver.h"

// ingot replay: runs a step of a run again, from its journal, and says whether it is the same.
namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string run;
  int64_t step = 0;
  bool json = false;
};

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

// A run as replaying goes through it.
struct Rerun {
  TrainState& state;
  Optimizer& optimizer;
  std::function<void()> restored;  // told when all is as in the checkpoint, or at the start
  std::function<Training()> training;
  std::function<Batch(int64_t sample)> batch;
  std::function<std::vector<Source>(int64_t sample)> sources;
};

// How a step that ran again differs from what the journal says of it; empty where it does not.
std::string difference(const StepReport& now, const JournalEntry& then, const Rerun& rerun) {
  for (size_t i = 0; i < then.batches.size(); ++i) {
    if (now.batches[i].hash == then.batches[i].hash) {
      continue;
    }
    std::string from;
    for (int64_t row = 0; row < then.batches[i].rows; ++row) {
      for (const Source& source : rerun.sources(then.batches[i].sample + row)) {
        from += concat(from.empty() ? "" : ", ", source.file, " ", source.begin, " to ",
                       source.end - 1);
      }
    }
    return concat("batch ", i, " (", from, ") has hash ", now.batches[i].hash, ", was ",
                  then.batches[i].hash, ": the data changed");
  }
  if (!same_bits(now.loss, then.loss)) {
    return concat("the loss is ", Json(now.loss).dump(), ", was ", Json(then.loss).dump());
  }
  if (!same_bits(now.grad_norm, then.grad_norm)) {
    return concat("the gradient norm is ", Json(now.grad_norm).dump(), ", was ",
                  Json(then.grad_norm).dump());
  }
  return "";
}

// The journal from the step after `from` to `last`, without gaps.
std::vector<JournalEntry> steps_between(const RunFolder& folder, int64_t from, int64_t last) {
  std::vector<JournalEntry> entries = read_journal(folder.journal(), from + 1, last);
  check(!entries.empty() && entries.back().step == last, ErrorKind::argument,
        folder.journal().string(), ": step ", last, " is not in it",
        entries.empty() ? std::string("; has the run come that far?")
                        : concat(": its last is ", entries.back().step));
  check(static_cast<int64_t>(entries.size()) == last - from, ErrorKind::format,
        folder.journal().string(), ": steps are missing between ", from + 1, " and ", last, ": ",
        entries.size(), " of ", last - from, " are there");
  return entries;
}

struct Replayed {
  int64_t from = 0;  // the step of the checkpoint, or 0: from the initial weights
  StepReport report;
  JournalEntry recorded;
  int64_t differing_step = 0;  // 0: none
  std::string difference;
};

Replayed replay(const Arguments& arguments, const RunFolder& folder, const Rerun& rerun) {
  Replayed out;
  if (const auto state = restore_before(folder.checkpoints(), arguments.step, rerun.optimizer)) {
    rerun.state = *state;
  }
  rerun.restored();
  out.from = rerun.state.step;
  const auto entries = steps_between(folder, out.from, arguments.step);
  Training training = rerun.training();
  const JournalEntry* entry = nullptr;
  // The samples that the run took, whatever it passed over.
  training.micro_batches = [&](int64_t) { return static_cast<int64_t>(entry->batches.size()); };
  training.batch = [&](int64_t) {
    return rerun.batch(entry->batches.at(training.randomness->micro).sample);
  };
  for (const JournalEntry& each : entries) {
    entry = &each;
    out.report = train_step(rerun.state, training);
    out.recorded = each;
    if (out.difference.empty()) {
      out.difference = difference(out.report, each, rerun);
      out.differing_step = out.difference.empty() ? 0 : each.step;
    }
  }
  return out;
}

Json documents_json(const JournalEntry& entry, const Rerun& rerun) {
  Json out = Json::array();
  for (const BatchRecord& batch : entry.batches) {
    for (int64_t row = 0; row < batch.rows; ++row) {
      for (const Source& source : rerun.sources(batch.sample + row)) {
        out.push_back({{"sample", batch.sample + row},
                       {"file", source.file},
                       {"begin", source.begin},
                       {"end", source.end}});
      }
    }
  }
  return out;
}

void print_text(const Replayed& found, const Json& documents, bool tokens) {
  std::cout << "step " << found.recorded.step << ", run again from step " << found.from << "\n"
            << "  loss           " << Json(found.report.loss).dump() << "  recorded "
            << Json(found.recorded.loss).dump() << "\n"
            << "  gradient norm  " << Json(found.report.grad_norm).dump() << "  recorded "
            << Json(found.recorded.grad_norm).dump() << "\n"
            << (found.difference.empty()
                    ? std::string("  the same, bit for bit")
                    : concat("  differs since step ", found.differing_step, ": ", found.difference))
            << (documents.empty() ? "\n" : "\ndocuments\n");
  for (const Json& one : documents) {
    std::cout << "  sample " << one["sample"] << "  " << one["file"].get<std::string>() << ", "
              << (tokens ? "tokens " : "bytes ") << one["begin"] << " to "
              << one["end"].get<int64_t>() - 1 << '\n';
  }
}

void print_replayed(const Arguments& arguments, const RunFolder& folder, const Rerun& rerun,
                    bool tokens) {
  const Replayed found = replay(arguments, folder, rerun);
  const Json documents = documents_json(found.recorded, rerun);
  if (arguments.json) {
    Json out;
    out["step"] = found.recorded.step;
    out["from"] = found.from;
    out["loss"] = found.report.loss;
    out["recorded_loss"] = found.recorded.loss;
    out["same"] = found.difference.empty();
    if (!found.difference.empty()) {
      out["differing_step"] = found.differing_step;
      out["difference"] = found.difference;
    }
    out["documents"] = documents;
    std::cout << out.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    print_text(found, documents, tokens);
  }
  if (!found.difference.empty()) {
    throw CLI::RuntimeError(1);  // as diff(1)
  }
}

void show_decoder(const Arguments& arguments, const RunFolder& folder, Recipe recipe) {
  const RunData data = open_run_data(recipe, folder.path().parent_path() / ".tokens");
  Session session(recipe, cpu_device, data.added);
  const auto restored = [&] {
    if (session.state.step > 0) {
      place_annealing(data, recipe, session.last_step());
    }
    prepare_answers(session, data, folder);
  };
  print_replayed(arguments, folder,
                 {session.state, session.optimizer(), restored,
                  [&] { return session.training(data.batch); }, data.batch, data.sources},
                 !recipe.data.tokenizer.empty());
}

void show_encoder(const Arguments& arguments, const RunFolder& folder,
                  const EncoderRecipe& recipe) {
  const EncoderData data = open_encoder_data(recipe);
  EncoderSession session(recipe, data);
  print_replayed(
      arguments, folder,
      {session.state, session.optimizer(), [] {}, [&] { return session.training(data.batch); },
       data.batch, [](int64_t) { return std::vector<Source>(); }},
      !recipe.data.tokenizer.empty());
}

void replay_command(const Arguments& arguments) {
  const RunFolder folder(arguments.run);
  check(file_exists(folder.journal()), ErrorKind::io, arguments.run,
        ": no journal.jsonl in it; give the folder of a run");
  const std::string name = folder.recipe().string();
  const std::string text = read_file(folder.recipe());
  if (is_encoder_text(text, name)) {
    show_encoder(arguments, folder, parse_encoder_recipe(text, name));
  } else {
    show_decoder(arguments, folder, parse_recipe(text, name));
  }
}

}  // namespace

void add_replay_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand(
      "replay",
      "Run a step of a run again from its nearest checkpoint, compare it bit for bit with "
      "the journal, and name the documents it read.");
  verb->footer("Example: ingot replay runs/kjv --step 120");
  auto arguments = std::make_shared<Arguments>();
  verb->add_option("run", arguments->run, "run folder")->required();
  verb->add_option("--step", arguments->step, "which step, 1 for the first")
      ->required()
      ->check(CLI::PositiveNumber);
  verb->add_flag("--json", arguments->json, "print JSON");
  verb->callback([arguments] { replay_command(*arguments); });
}

}  // namespace ingot
