#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/generate/generate.h"
#include "ingot/text/chat_message.h"

namespace ingot {

// What is wrong with a request, as OpenAI's interface says it: a status and
// {"error": {"message": …, "type": …, "param": …, "code": …}}.
class ApiError : public std::runtime_error {
 public:
  ApiError(int status, const std::string& message, std::string param = "", std::string code = "")
      : std::runtime_error(message),
        status_(status),
        param_(std::move(param)),
        code_(std::move(code)) {}

  int status() const { return status_; }
  const std::string& param() const { return param_; }  // "" for none
  const std::string& code() const { return code_; }

 private:
  int status_;
  std::string param_, code_;
};

// Limits that a body is held to before anything is computed.
struct RequestLimits {
  int64_t context = 0;
  int64_t vocab = 0;
  int64_t max_tokens = 4096;  // of one answer
  int64_t answers = 16;       // of one request: n times its prompts
  int64_t stop_texts = 16;
};

// What chat and text completions have in common.
struct CompletionRequest {
  std::string model;  // as the client calls it; "" for none
  GenerateConfig config;
  bool max_tokens_given = false;
  bool seed_given = false;
  std::vector<std::string> stop_texts;
  int64_t n = 1;
  bool stream = false;
  bool include_usage = false;      // stream_options
  int64_t log_probabilities = -1;  // as Request has it
  jinja::Value schema;             // of response_format; none where it is plain text
  std::string regex;               // "regex", an extension

  // Chat: messages. Text: one or more prompts, texts or token ids.
  bool chat = false;
  Conversation conversation;
  jinja::Mapping template_arguments;  // chat_template_kwargs, an extension that many clients send
  struct Prompt {
    std::string text;
    std::optional<Tokens> ids;
  };
  std::vector<Prompt> prompts;
  bool echo = false;
};

struct EmbeddingRequest {
  std::string model;
  std::vector<CompletionRequest::Prompt> inputs;
  bool base64 = false;
};

// The bodies of POST /v1/chat/completions, /v1/completions and /v1/embeddings. Fields that are not
// known are passed over, those that are known and cannot be kept to are refused. Throws
// ApiError(400) that names the field.
CompletionRequest parse_chat_request(std::string_view body, const RequestLimits& limits);
CompletionRequest parse_text_request(std::string_view body, const RequestLimits& limits);
EmbeddingRequest parse_embedding_request(std::string_view body);

}  // namespace ingot
