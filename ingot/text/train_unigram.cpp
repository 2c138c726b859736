#include "ingot/text/train_unigram.h"

#include <sentencepiece_trainer.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "ingot/base/error.h"
#include "ingot/text/sentencepiece.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

constexpr size_t longest_line = 100'000;
// The library skips lines with these, which it uses itself.
constexpr std::string_view reserved[] = {"\t", "\xE2\x96\x85"};

// The lines of all texts.
class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const std::vector<std::string_view>& texts) : texts_(texts) { Next(); }

  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }
  void Next() override {
    while (text_ < texts_.size()) {
      const std::string_view left = texts_[text_].substr(at_);
      if (left.empty()) {
        ++text_;
        at_ = 0;
        continue;
      }
      const size_t end = line_end(left);
      line_ = with_replacements(left.substr(0, end));
      at_ += std::max<size_t>(end, 1);
      while (at_ < texts_[text_].size() && end > 0 && is_gap(texts_[text_].substr(at_))) {
        ++at_;
      }
      if (!line_.empty()) {
        return;
      }
    }
    done_ = true;
  }

 private:
  static bool is_gap(std::string_view left) { return left[0] == '\n' || left[0] == '\t'; }
  static size_t line_end(std::string_view left) {
    size_t end = std::min(left.find('\n'), left.size());
    for (const std::string_view mark : reserved) {
      end = std::min(end, left.substr(0, end).find(mark));
    }
    if (end <= longest_line) {
      return end;
    }
    end = longest_line;
    while (end > 1 && (static_cast<uint8_t>(left[end]) & 0xC0) == 0x80) {
      --end;
    }
    return end;
  }

  const std::vector<std::string_view>& texts_;
  size_t text_ = 0;
  size_t at_ = 0;
  std::string line_;
  bool done_ = false;
};

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    check(word.find(',') == std::string::npos, ErrorKind::config,
          "tokenizer training: a special token of a Unigram tokenizer cannot hold a comma: ", word);
    out += (out.empty() ? "" : ",") + word;
  }
  return out;
}

// Tokens that are no text must have a score in tokenizer.json: one so low that their spelling in a
// text does not become them, where its characters have tokens.
void bury_nameless(std::vector<double>& scores) {
  double least = 0;
  for (const double score : scores) {
    least = std::isnan(score) ? least : std::min(least, score);
  }
  for (double& score : scores) {
    score = std::isnan(score) ? least - 1000 : score;
  }
}

}  // namespace

TokenizerSpec train_unigram(const std::vector<std::string_view>& texts,
                            const UnigramTraining& settings) {
  std::unordered_map<std::string, std::string> options = {
      {"model_type", "unigram"},
      {"vocab_size", std::to_string(settings.vocabulary)},
      {"character_coverage", std::to_string(settings.character_coverage)},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "true"},
      {"byte_fallback", "true"},
      {"max_sentence_length", std::to_string(2 * longest_line)},
      {"bos_id", "-1"},
      {"eos_id", "-1"},
      {"pad_id", "-1"},
      {"num_threads", std::to_string(std::max(1U, std::thread::hardware_concurrency()))},
      {"minloglevel", "2"},
  };
  if (!settings.special.empty()) {
    options["control_symbols"] = joined(settings.special);
  }
  Lines lines(texts);
  check(!lines.done(), ErrorKind::format, "tokenizer training: the text holds no word");
  std::string model;
  const sentencepiece::util::Status status =
      sentencepiece::SentencePieceTrainer::Train(options, &lines, &model);
  check(status.ok(), ErrorKind::format,
        "tokenizer training: SentencePiece refuses: ", status.ToString());
  TokenizerSpec spec = parse_sentencepiece(model, "trained");
  spec.single_precision = false;
  bury_nameless(spec.scores);
  spec.normalizer = "null";
  spec.post_processor = "null";
  spec.pre_tokenizer =
      R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true})";
  spec.decoder =
      R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},)"
      R"({"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})";
  return spec;
}

}  // namespace ingot
