#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "ingot/base/error.h"
#include "ingot/generate/generate.h"
#include "ingot/generate/log_probability.h"
#include "ingot/generate/paged_decoding.h"
#include "ingot/generate/token_filter.h"

namespace ingot {

struct SchedulerConfig {
  int64_t rows = 16;         // texts written side by side at most
  int64_t page_tokens = 64;  // of a page: the unit of sharing, and of reading prompts
  int64_t cache_tokens = 0;  // room for keys and values; 0: rows times the model's context
  std::string kv = "model";  // what keys and values are kept in: the model's type, or int8
  bool share_prefixes = true;
  bool go_on = false;  // a text that outgrows the context goes on from its last half; else it ends

  template <class V>
  void describe(V& v) {
    v("rows", rows, at_least(1), "texts written side by side at most");
    v("page_tokens", page_tokens, at_least(1),
      "tokens of a page of the cache, a divisor or a multiple of 64");
    v("cache_tokens", cache_tokens, at_least(0),
      "tokens that the cache has room for; 0: rows times the context");
    v("kv", kv, one_of({"model", "int8"}), "what keys and values are kept in");
    v("share_prefixes", share_prefixes, "prompts that begin alike are read once");
    v("go_on", go_on, "a text that outgrows the context goes on from its last half");
  }
};

// Room for `rows` texts of at most `tokens` tokens each.
SchedulerConfig room_for(int64_t rows, int64_t tokens, const std::string& kv = "model");
// The tokens that a cache of so many bytes has room for: no more than config.rows whole contexts,
// and no fewer than one.
int64_t cache_tokens_within(const Decoder& model, const SchedulerConfig& config, int64_t bytes);

// One token, and what the model alone thought of it (log_probability.h).
struct Drawn {
  int64_t token = 0;
  std::optional<double> log_probability;  // where Request::log_probabilities asks for it
  LogProbabilities::Ranked best;
};

enum class Finish : uint8_t {
  stop,       // a stop token, or all that the filter allows was written
  length,     // max_tokens
  context,    // the model's context is full
  told,       // on_token returned false
  cancelled,  // cancel()
  failed,     // see Answer::failure
};

struct Answer {
  Tokens tokens;
  Finish finish = Finish::length;
  std::optional<Error> failure;  // why it failed
  std::vector<Drawn> prompt;  // with Request::prompt_log_probabilities: of all tokens but the first
  int64_t shared_tokens = 0;  // of the prompt, that another text had read
};

struct Request {
  Tokens prompt;
  GenerateConfig config;
  int64_t choice = 0;  // which of several answers to one prompt
  int64_t log_probabilities =
      -1;  // how many of the likeliest to name; 0: the drawn one's alone; −1: none
  bool prompt_log_probabilities = false;
  std::unique_ptr<TokenFilter> filter;         // may be null
  std::function<bool(const Drawn&)> on_token;  // false ends the text; may be empty
  std::function<void(const Answer&)> on_end;   // called once, whatever happens
};

// Writes many texts at once: requests join and leave at any step. A step reads one page of the
// oldest prompt that is not read yet, then one token of every text that is being written.
//
// A request is taken when there are pages for all that it may ever need, its prompt and max_tokens,
// so that no text is ever thrown out half-way; requests are taken in the order they came. What a
// request's tokens are depends on nothing but itself (PagedDecoding), if the model's kernels use
// the same number of threads.
//
// Used from one thread.
class Scheduler {
 public:
  // The model must outlive this.
  Scheduler(const Decoder& model, const SchedulerConfig& config);
  ~Scheduler();

  // Throws Error(argument) for an empty prompt, one with tokens outside the vocabulary, one beyond
  // the context, or one that never fits into the cache. From any thread.
  void check_request(const Request& request) const;
  // Queues a request, which is checked, and returns its number.
  int64_t add(Request request);
  void cancel(int64_t number);  // unknown or ended: nothing
  bool step();                  // false when nothing is left to do

  int64_t waiting() const { return static_cast<int64_t>(waiting_.size()); }
  int64_t running() const { return static_cast<int64_t>(running_.size()); }
  const PagedDecoding& decoding() const { return decoding_; }
  // Since the beginning.
  int64_t tokens_read() const { return tokens_read_; }      // of prompts
  int64_t tokens_shared() const { return tokens_shared_; }  // of prompts, not read again
  int64_t tokens_written() const { return tokens_written_; }

 private:
  struct Row {
    int64_t number = 0;
    Request request;
    PagedText text;
    Answer answer;
    Drawn drawn;  // last
    bool done = false;
  };
  int64_t tokens_of(const Request& request) const;  // that its pages must hold
  void admit();
  void read_a_prompt();
  void write_tokens();
  void draw(Row& row, std::span<const float> logits) const;
  void note_prompt(Row& row, const Tensor& hidden, int64_t first) const;
  void deliver(Row& row);
  static void end(Row& row, Finish finish, std::optional<Error> failure = std::nullopt);
  void remove_done();

  SchedulerConfig config_;
  PagedDecoding decoding_;
  std::deque<Row> waiting_;
  std::list<Row> running_;
  int64_t last_ = 0;
  int64_t tokens_read_ = 0, tokens_shared_ = 0, tokens_written_ = 0;
};

}  // namespace ingot
