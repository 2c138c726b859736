#include "ingot/cli/answer_samples.h"

#include <fmt/format.h>

#include <algorithm>

#include "ingot/cli/run_rows.h"

namespace ingot {
namespace {

// An answer of an example as tokens; the one text of it in which the answer is learnt.
AnswerRow row_of(const Example& example, size_t answer, const Renderer& renderer) {
  for (const TokenRow& row : renderer(with_answer(example, answer))) {
    if (row.targets() > 0) {
      return {{row.ids.begin(), row.ids.end()}, row.learnt};
    }
  }
  throw RowError(RowFault::untrained, example.place.text() + ": an answer has no token to learn");
}

class SampleBuilder {
 public:
  SampleBuilder(const Recipe& recipe, const Renderer& renderer, AnswerSplit& out)
      : recipe_(recipe), renderer_(renderer), out_(out) {
    check(recipe.data.long_rows != "split", ErrorKind::config,
          "data.long: an answer cannot be split and compared; choose drop, truncate or raise");
  }

  // `all_held_out`: of a file of its own.
  void add(const Example& example, bool all_held_out) {
    AnswerSample sample;
    sample.wanted = example.wanted;
    for (size_t i = 0; i < example.answers.size(); ++i) {
      sample.answers.push_back(row_of(example, i, renderer_));
    }
    if (example.scores.size() == 2) {
      sample.margin = example.scores[0] - example.scores[1];
    }
    if (!fits(example, sample)) {
      return;
    }
    const uint64_t hash = content_hash(example);
    out_.content.update(std::as_bytes(std::span(&hash, 1)));
    const bool by_file = !recipe_.data.validation_files.empty();
    const bool held = by_file ? all_held_out : is_held_out(hash, recipe_.data.validation_fraction);
    (held ? out_.held_out : out_.training)->push_back(std::move(sample));
  }

 private:
  bool fits(const Example& example, AnswerSample& sample) {
    const int64_t longest = recipe_.train.sequence;
    int64_t inputs = 0;
    for (const AnswerRow& row : sample.answers) {
      inputs = std::max(inputs, static_cast<int64_t>(row.ids.size()) - 1);
    }
    if (inputs <= longest) {
      return true;
    }
    const std::string where =
        concat(example.place.text(), " has ", inputs, " tokens, train.sequence is ", longest);
    check(recipe_.data.long_rows != "raise", ErrorKind::format, where,
          "; lengthen train.sequence, or set data.long to drop or truncate");
    out_.first_long = out_.first_long.empty() ? where : out_.first_long;
    bool usable = recipe_.data.long_rows == "truncate";
    for (AnswerRow& row : sample.answers) {
      usable = usable && cut_to(row, longest);
    }
    ++(usable ? out_.cut : out_.dropped);
    return usable;
  }

  const Recipe& recipe_;
  const Renderer& renderer_;
  AnswerSplit& out_;
};

ReadOptions reading_options(const Recipe& recipe) { return tokenize_options(recipe.data).read; }

}  // namespace

bool cut_to(AnswerRow& row, int64_t longest) {
  const auto most = static_cast<size_t>(longest + 1);
  if (row.ids.size() > most) {
    row.ids.resize(most);
    row.learnt.resize(most);
  }
  return row.answer_tokens() > 0;
}

void take_apart(AnswerSamples& samples) {
  AnswerSamples out;
  for (AnswerSample& pair : samples) {
    for (size_t i = 0; i < pair.answers.size(); ++i) {
      const bool wanted = pair.answers.size() == 1 ? pair.wanted : i == 0;
      out.push_back({{std::move(pair.answers[i])}, 0, wanted});
    }
  }
  samples = std::move(out);
}

void read_answers(const Recipe& recipe, const Renderer& renderer,
                  std::initializer_list<ExampleKind> kinds, AnswerSplit& out) {
  const DataConfig& data = recipe.data;
  check(!data.files.empty(), ErrorKind::config, "data: no files are given; set data.files");
  SampleBuilder builder(recipe, renderer, out);
  const auto take = [&](const std::vector<std::string>& files, bool held_out) {
    for (const std::string& file : files) {
      ExampleReader reader(file, reading_options(recipe));
      std::vector<Example> examples;
      while (reader.next(examples)) {
        for (const Example& example : examples) {
          check(std::ranges::find(kinds, example.kind) != kinds.end(), ErrorKind::config,
                example.place.text(), ": kind = \"", recipe.kind, "\" reads ",
                recipe.kind == "kto" ? "answers with labels, or pairs"
                                     : "pairs of a chosen and a rejected answer",
                "; this row is ", name(example.kind));
          builder.add(example, held_out);
        }
      }
      out.counts.add(reader.counts());
    }
  };
  take(data.files, false);
  take(data.validation_files, true);
}

std::string AnswerSplit::sizes(const char* what) const {
  std::string out =
      fmt::format("{} training and {} held-out {}", training->size(), held_out->size(), what);
  if (cut + dropped > 0) {
    out += fmt::format("; too long: {} cut, {} dropped ({})", cut, dropped, first_long);
  }
  const std::string unusable = counts.text();
  return unusable.empty() ? out : out + "\n" + unusable;
}

}  // namespace ingot
