#include "ingot/cli/answer_data.h"

#include <algorithm>
#include <cmath>

#include "ingot/base/progress.h"
#include "ingot/cli/answer_samples.h"
#include "ingot/cli/run_rows.h"
#include "ingot/data/shuffle.h"
#include "ingot/posttrain/answer_rows.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

std::vector<int64_t> prompt_of(const AnswerRow& row) {
  const auto first = std::ranges::find(row.learnt, uint8_t{1}) - row.learnt.begin();
  return {row.ids.begin(), row.ids.begin() + first};
}

class SampleList : public Dataset<const AnswerSample*> {
 public:
  explicit SampleList(std::shared_ptr<const AnswerSamples> samples)
      : samples_(std::move(samples)) {}
  int64_t size() const override { return static_cast<int64_t>(samples_->size()); }
  const AnswerSample* get(int64_t i) const override {
    return &(*samples_)[static_cast<size_t>(i % size())];
  }
  bool holds(const AnswerSample* sample) const {
    return sample >= samples_->data() && sample < samples_->data() + samples_->size();
  }
  // The next one in the file whose prompt is another; itself where all are alike.
  const AnswerSample* mate(const AnswerSample* sample) const {
    const int64_t at = sample - samples_->data();
    for (int64_t step = 1; step < size(); ++step) {
      const AnswerSample* other = get(at + step);
      if (prompt_of(other->answers[0]) != prompt_of(sample->answers[0])) {
        return other;
      }
    }
    return sample;
  }

 private:
  std::shared_ptr<const AnswerSamples> samples_;
};

// The prompt of one row with the answer of another.
AnswerRow with_answer_of(const AnswerRow& prompt, const AnswerRow& answer) {
  AnswerRow out;
  out.ids = prompt_of(prompt);
  out.learnt.assign(out.ids.size(), 0);
  for (size_t t = 0; t < answer.ids.size(); ++t) {
    if (answer.learnt[t] != 0) {
      out.ids.push_back(answer.ids[t]);
      out.learnt.push_back(1);
    }
  }
  return out;
}

// Rows of a batch of samples.
using MakeBatch = std::function<Batch(const std::vector<const AnswerSample*>& samples)>;

void set_batches(const Recipe& recipe, const std::shared_ptr<const SampleList>& training,
                 const std::shared_ptr<const SampleList>& held_out, const MakeBatch& make,
                 RunData& out) {
  const int64_t micro = recipe.train.batch / recipe.train.accumulate;
  const auto shuffled =
      std::make_shared<Shuffled<const AnswerSample*>>(training, static_cast<uint64_t>(recipe.seed));
  out.batch = [=](int64_t position) {  // counted in rows, of which a sample has two
    std::vector<const AnswerSample*> samples;
    for (int64_t i = 0; i < micro; ++i) {
      samples.push_back(shuffled->get(position / 2 + i));
    }
    return make(samples);
  };
  const auto in_order = [](const std::shared_ptr<const SampleList>& list, int64_t rows,
                           const MakeBatch& of) {
    return [=](int64_t index) {
      std::vector<const AnswerSample*> samples;
      for (int64_t i = index * rows; i < std::min((index + 1) * rows, list->size()); ++i) {
        samples.push_back(list->get(i));
      }
      return of(samples);
    };
  };
  const int64_t rows = recipe.evaluate.batch;
  const auto batches = [rows](const SampleList& list) { return (list.size() + rows - 1) / rows; };
  out.validation = in_order(held_out, rows, make);
  out.validation_batches = batches(*held_out);
  const int64_t of_training = batches(*training);
  out.every_answer = [first = in_order(training, rows, make), of_training,
                      second = out.validation](int64_t index) {
    return index < of_training ? first(index) : second(index - of_training);
  };
  out.every_answer_batches = of_training + out.validation_batches;
}

// Row `answer` of each sample.
void append(const std::vector<const AnswerSample*>& samples, size_t answer,
            std::vector<AnswerRow>& rows) {
  for (const AnswerSample* sample : samples) {
    rows.push_back(sample->answers[answer]);
  }
}

std::string shown_pair(const AnswerSamples& samples, const Tokenizer& tokenizer) {
  const Colours colours = standard_error_style().terminal ? Colours::terminal : Colours::none;
  std::string out;
  for (const AnswerRow& row : samples.front().answers) {
    const TokenRow tokens{{row.ids.begin(), row.ids.end()}, row.learnt};
    out += (out.empty() ? "" : "\n--- against\n") + shown(tokens, tokenizer, colours);
  }
  return out;
}

struct Opened {
  RunData data;
  std::shared_ptr<const SampleList> training, held_out;
};

Opened open_answers(Recipe& recipe, std::initializer_list<ExampleKind> kinds, bool apart,
                    const char* what) {
  const Reading reading = reading_of(recipe);
  const Tokenizer& tokenizer = *reading.tokenizer;
  if (reading.added.count > 0) {
    recipe.model.vocab = std::max(recipe.model.vocab, tokenizer.vocabulary_size());
  }
  check_vocabulary(tokenizer, recipe.model.vocab, "data.tokenizer: " + tokenizer.spec().source);
  const Renderer renderer(
      reading.tokenizer, reading.chat,
      render_options(recipe.data, tokenizer, static_cast<uint64_t>(recipe.seed)));
  AnswerSplit split;
  read_answers(recipe, renderer, kinds, split);
  if (apart) {
    take_apart(*split.training);
    take_apart(*split.held_out);
  }
  check(!split.training->empty(), ErrorKind::config, "data: no ", what, " is left to train on",
        split.first_long.empty() ? "" : "; too long: " + split.first_long);
  check_held_out(recipe, static_cast<int64_t>(split.held_out->size()));
  if (recipe.train.epochs > 0) {
    recipe.train.steps = std::max<int64_t>(
        1, static_cast<int64_t>(
               std::ceil(recipe.train.epochs * static_cast<double>(split.training->size()) /
                         static_cast<double>(recipe.train.batch))));
  }
  Opened out;
  out.data.sizes = split.sizes(what);
  out.data.example = shown_pair(*split.training, tokenizer);
  out.data.codec = TextCodec(reading.tokenizer);
  out.data.chat = reading.chat;
  out.data.added = reading.added;
  out.data.tokenizer_files = reading.files;
  out.data.hash =
      hash_hex(concat(split.content.hex(), tokenizer.hash(), renderer.hash(), recipe.data.long_rows,
                      recipe.train.sequence, recipe.data.validation_fraction));
  out.training = std::make_shared<SampleList>(split.training);
  out.held_out = std::make_shared<SampleList>(split.held_out);
  return out;
}

}  // namespace

RunData open_pairs(Recipe& recipe, const std::filesystem::path&) {
  Opened opened = open_answers(recipe, {ExampleKind::pair}, false, "pairs");
  set_batches(
      recipe, opened.training, opened.held_out,
      [longest = recipe.train.sequence](const auto& samples) {
        std::vector<AnswerRow> rows;
        append(samples, 0, rows);
        append(samples, 1, rows);
        return answer_batch(rows, longest);
      },
      opened.data);
  return std::move(opened.data);
}

RunData open_scored_pairs(Recipe& recipe, const std::filesystem::path&) {
  Opened opened = open_answers(recipe, {ExampleKind::pair}, false, "pairs");
  set_batches(
      recipe, opened.training, opened.held_out,
      [longest = recipe.train.sequence + 1,
       with_margin = recipe.reward.margin](const auto& samples) {
        std::vector<AnswerRow> rows;
        append(samples, 0, rows);
        append(samples, 1, rows);
        Batch batch = scored_batch(rows, longest);
        if (with_margin) {
          std::vector<float> margins;
          for (const AnswerSample* sample : samples) {
            margins.push_back(static_cast<float>(sample->margin));
          }
          batch.columns.add("margin", tensor_of(margins, {batch.ids.size(0) / 2}));
        }
        return batch;
      },
      opened.data);
  return std::move(opened.data);
}

RunData open_labelled(Recipe& recipe, const std::filesystem::path&) {
  check(recipe.train.batch / recipe.train.accumulate >= 2, ErrorKind::config,
        "train.accumulate: kto estimates its reference point in every micro-batch, which needs two "
        "answers at least: a micro-batch has ",
        recipe.train.batch / recipe.train.accumulate);
  Opened opened = open_answers(recipe, {ExampleKind::pair, ExampleKind::label}, true, "answers");
  const auto make = [longest = recipe.train.sequence](const auto& samples, const SampleList& list) {
    std::vector<AnswerRow> rows;
    append(samples, 0, rows);
    std::vector<int64_t> wanted;
    for (const AnswerSample* sample : samples) {
      wanted.push_back(sample->wanted ? 1 : 0);
      AnswerRow mixed = with_answer_of(sample->answers[0], list.mate(sample)->answers[0]);
      rows.push_back(cut_to(mixed, longest) ? std::move(mixed) : sample->answers[0]);
    }
    Batch batch = answer_batch(rows, longest);
    const auto count = static_cast<int64_t>(wanted.size());
    batch.columns.add("desirable", converted(tensor_of(wanted, {count}), DType::bool_));
    return batch;
  };
  set_batches(
      recipe, opened.training, opened.held_out,
      [make, list = opened.training, held = opened.held_out](const auto& samples) {
        const bool own = list->holds(samples.front());
        return make(samples, own ? *list : *held);
      },
      opened.data);
  return std::move(opened.data);
}

}  // namespace ingot
