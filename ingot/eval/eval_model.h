#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

// What an evaluation asks of a model. Functions, so that a test can stand in for a model.
struct EvalModel {
  using Ids = std::vector<int64_t>;

  struct Question {
    Ids context;  // at least one token
    Ids continuation;
  };
  struct Score {
    double log_probability = 0;
    bool greedy = true;  // the continuation is what the likeliest tokens spell
  };
  struct Prompt {
    Ids ids;
    std::vector<std::string> until;  // texts at which writing stops; not part of the answer
    int64_t max_tokens = 256;
  };

  struct Written {
    std::string text;
    bool ended = false;  // by itself: with a token that ends a text, or one of `until`
  };

  // A text's ids; `begin`: with what the model wants before a text. `special`: special tokens
  // spelled in it are these.
  std::function<Ids(std::string_view text, bool begin, bool special)> encode;
  std::function<std::vector<Score>(std::span<const Question>)> score;
  std::function<std::vector<Written>(std::span<const Prompt>)> write;  // greedily
  // Σ ln p of all tokens of a text behind its first `known`.
  std::function<double(std::span<const int64_t> ids, int64_t known)> text_score;
  // A user's turn as the model's chat template renders it, up to where the answer begins; empty
  // function: there is no template.
  std::function<std::string(const std::string& user)> chat;
  int64_t context = 0;
  int64_t empty_context = 0;  // the token that stands where a context would be empty
};

// Context and continuation as lm-evaluation-harness encodes them: blanks at the end of the context
// belong to the continuation; the whole is encoded, and what goes beyond the ids of the context
// alone is the continuation. An empty context is the token that begins a text.
EvalModel::Question question_of(const EvalModel& model, std::string context,
                                std::string continuation, bool special = false);

}  // namespace ingot
