#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ingot/base/json_library.h"
#include "ingot/cli/answer_text.h"
#include "ingot/cli/loaded_model.h"
#include "ingot/cli/serve_engine.h"
#include "ingot/cli/serve_request.h"

namespace ingot {

// The answer to one chat or text request: what the engine is asked, and how what it tells becomes a
// response, whole or in the chunks of a stream. It knows nothing of sockets.
class CompletionAnswer {
 public:
  // What every response names.
  struct Label {
    std::string id;       // "chatcmpl-…"
    int64_t created = 0;  // seconds since 1970
    std::string model;
  };

  // Encodes the prompts. Throws ApiError(400) for what the model cannot read. The model must
  // outlive this.
  CompletionAnswer(const LoadedModel& loaded, CompletionRequest request,
                   const RequestLimits& limits, Label label, int64_t random_seed);

  // The ids of a prompt, or of another input. Throws ApiError(400) that names `param`.
  static Tokens tokens_of(const LoadedModel& loaded, const CompletionRequest::Prompt& prompt,
                          const RequestLimits& limits, const std::string& param);

  const CompletionRequest& request() const { return request_; }
  std::vector<Request> engine_requests() const;

  // The first chunks of a stream, before any token.
  std::vector<std::string> opening() const;
  // Takes what the engine tells; the chunks that it makes. Throws the Error of a failed answer.
  std::vector<std::string> take(const AnswerEvent& event);
  // Whether more of an answer is wanted: no stop string has ended it.
  bool wants(size_t answer) const { return choices_[answer].finish.empty(); }
  bool done() const;
  // The last chunk, where usage is wanted.
  std::vector<std::string> closing() const;
  // The whole response, once it is done.
  std::string body() const;

  int64_t prompt_tokens() const;
  int64_t written_tokens() const;

 private:
  using Json = nlohmann::ordered_json;
  struct Choice {
    size_t prompt = 0;
    AnswerText text;
    std::string written;
    std::vector<Drawn> drawn;
    int64_t tokens = 0;  // up to the one that ended it
    std::string finish;  // "" while it is written
    bool over = false;   // the engine is done with it
    Answer ended;
  };

  void end_with(size_t index, const std::string& text, std::vector<std::string>& chunks);
  Json chunk() const;
  Json piece(size_t index, const std::string& text, const std::vector<Drawn>& drawn,
             const std::string& finish) const;
  Json logprobs(size_t index, const std::vector<Drawn>& drawn, bool with_prompt) const;
  Json usage() const;
  std::string echoed(size_t index) const;

  const LoadedModel& loaded_;
  CompletionRequest request_;
  Label label_;
  std::vector<Tokens> prompts_;
  std::vector<Choice> choices_;
};

}  // namespace ingot
