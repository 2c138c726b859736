#include "ingot/cli/serve_request.h"

#include <cmath>
#include <limits>

#include "ingot/base/error.h"
#include "ingot/text/jinja_json.h"

namespace ingot {
namespace {

using jinja::Items;
using jinja::Mapping;
using jinja::Value;

template <class... Parts>
[[noreturn]] void refuse(const std::string& param, const Parts&... parts) {
  throw ApiError(400, param.empty() ? concat(parts...) : concat(param, ": ", parts...), param);
}

// The fields of a body, with errors that name them. A field that is null counts as absent.
class BodyFields {
 public:
  BodyFields(Value object, std::string name) : object_(std::move(object)), name_(std::move(name)) {
    if (object_.mapping() == nullptr) {
      refuse(name_, name_.empty() ? "the body is no JSON object" : "not an object");
    }
  }

  const Value* find(std::string_view key) const {
    const Value* found = object_.mapping()->find(key);
    return found == nullptr || found->is<jinja::None>() ? nullptr : found;
  }
  std::string path(std::string_view key) const {
    return name_.empty() ? std::string(key) : concat(name_, '.', key);
  }
  const Value& object() const { return object_; }

  double number(std::string_view key, double otherwise, double least, double most) const {
    const Value* found = find(key);
    if (found == nullptr) {
      return otherwise;
    }
    const double* real = found->as<double>();
    const int64_t* whole = found->as<int64_t>();
    const double value = real != nullptr    ? *real
                         : whole != nullptr ? static_cast<double>(*whole)
                                            : NAN;
    if (!(value >= least && value <= most)) {
      refuse(path(key), "must be a number from ", least, " to ", most);
    }
    return value;
  }
  int64_t integer(std::string_view key, int64_t otherwise, int64_t least, int64_t most) const {
    const Value* found = find(key);
    if (found == nullptr) {
      return otherwise;
    }
    const int64_t* value = found->as<int64_t>();
    if (value == nullptr || *value < least || *value > most) {
      refuse(path(key), "must be a whole number from ", least, " to ", most);
    }
    return *value;
  }
  bool truth(std::string_view key, bool otherwise) const {
    const Value* found = find(key);
    if (found == nullptr) {
      return otherwise;
    }
    const bool* value = found->as<bool>();
    if (value == nullptr) {
      refuse(path(key), "must be true or false");
    }
    return *value;
  }
  std::string text(std::string_view key, const std::string& otherwise) const {
    const Value* found = find(key);
    if (found == nullptr) {
      return otherwise;
    }
    if (found->text() == nullptr) {
      refuse(path(key), "must be a string");
    }
    return *found->text();
  }

 private:
  Value object_;
  std::string name_;
};

BodyFields parse_body(std::string_view body) {
  try {
    return {jinja::parse_json_value(body, "the body"), ""};
  } catch (const Error& error) {
    throw ApiError(400, error.what(), "", "invalid_json");
  }
}

std::vector<std::string> stop_texts(const BodyFields& fields, int64_t most) {
  const Value* stop = fields.find("stop");
  if (stop == nullptr) {
    return {};
  }
  if (stop->text() != nullptr) {
    return {*stop->text()};
  }
  std::vector<std::string> out;
  if (stop->list() == nullptr || static_cast<int64_t>(stop->list()->size()) > most) {
    refuse("stop", "must be a string or a list of at most ", most, " strings");
  }
  for (const Value& text : *stop->list()) {
    if (text.text() == nullptr) {
      refuse("stop", "must be a string or a list of strings");
    }
    out.push_back(*text.text());
  }
  return out;
}

std::map<int64_t, double> logit_bias(const BodyFields& fields, int64_t vocab) {
  std::map<int64_t, double> out;
  const Value* bias = fields.find("logit_bias");
  if (bias == nullptr) {
    return out;
  }
  const BodyFields entries(*bias, "logit_bias");
  for (const auto& [key, value] : bias->mapping()->items()) {
    const std::string& id = *key.text();
    const bool number =
        !id.empty() && id.size() < 10 && id.find_first_not_of("0123456789") == std::string::npos;
    if (!number || std::stoll(id) >= vocab) {
      refuse("logit_bias", "'", id, "' is no token id below ", vocab);
    }
    out[std::stoll(id)] = entries.number(id, 0, -100, 100);
  }
  return out;
}

// What keeps the answer to a form: response_format, and our own "regex".
void read_format(const BodyFields& fields, CompletionRequest& out) {
  out.regex = fields.text("regex", "");
  const Value* format = fields.find("response_format");
  if (format == nullptr) {
    return;
  }
  const BodyFields own(*format, "response_format");
  const std::string type = own.text("type", "");
  if (type == "json_schema") {
    const Value* wrapped = own.find("json_schema");
    const Value* schema = wrapped == nullptr
                              ? nullptr
                              : BodyFields(*wrapped, "response_format.json_schema").find("schema");
    if (schema == nullptr) {
      refuse("response_format", "json_schema.schema is missing");
    }
    out.schema = *schema;
  } else if (type != "text") {
    refuse("response_format", "type '", type, "' is not served; give text or json_schema");
  }
  if (!out.regex.empty() && !out.schema.is<jinja::None>()) {
    refuse("regex", "goes not with response_format");
  }
}

void read_settings(const BodyFields& fields, const RequestLimits& limits, CompletionRequest& out) {
  out.model = fields.text("model", "");
  SamplingConfig& sampling = out.config.sampling;
  sampling.temperature = fields.number("temperature", 1, 0, 2);
  sampling.top_p = fields.number("top_p", 1, 0, 1);
  sampling.top_k = std::max<int64_t>(fields.integer("top_k", 0, -1, limits.vocab), 0);
  sampling.min_p = fields.number("min_p", 0, 0, 1);
  sampling.typical_p = fields.number("typical_p", 1, 0, 1);
  LogitRules& rules = out.config.rules;
  rules.repetition_penalty = fields.number("repetition_penalty", 1, 0.01, 100);
  rules.presence_penalty = fields.number("presence_penalty", 0, -2, 2);
  rules.frequency_penalty = fields.number("frequency_penalty", 0, -2, 2);
  rules.bias = logit_bias(fields, limits.vocab);
  out.seed_given = fields.find("seed") != nullptr;
  // Negative seeds are seeds too: they count down from the largest.
  const int64_t seed = fields.integer("seed", 0, std::numeric_limits<int64_t>::min(),
                                      std::numeric_limits<int64_t>::max());
  out.config.seed = seed & std::numeric_limits<int64_t>::max();
  out.stop_texts = stop_texts(fields, limits.stop_texts);
  out.n = fields.integer("n", 1, 1, limits.answers);
  out.stream = fields.truth("stream", false);
  if (const Value* options = fields.find("stream_options")) {
    out.include_usage = BodyFields(*options, "stream_options").truth("include_usage", false);
  }
  for (const char* key : {"max_completion_tokens", "max_tokens"}) {
    if (fields.find(key) != nullptr) {
      out.config.max_tokens = fields.integer(key, 0, 0, limits.max_tokens);
      out.max_tokens_given = true;
      break;
    }
  }
  read_format(fields, out);
}

CompletionRequest::Prompt prompt_of_ids(const Items& ids, const std::string& param) {
  CompletionRequest::Prompt out;
  out.ids.emplace();
  for (const Value& id : ids) {
    const int64_t* number = id.as<int64_t>();
    if (number == nullptr) {
      refuse(param, "must be a string, a list of strings, token ids, or a list of lists of them");
    }
    out.ids->push_back(*number);
  }
  return out;
}

std::vector<CompletionRequest::Prompt> prompts_of(const BodyFields& fields,
                                                  const std::string& param, int64_t most) {
  const Value* given = fields.find(param);
  if (given == nullptr) {
    refuse(param, "is missing");
  }
  if (given->text() != nullptr) {
    return {{*given->text(), std::nullopt}};
  }
  const Items* list = given->list();
  if (list == nullptr || list->empty()) {
    refuse(param, "must be a string, a list of strings, token ids, or a list of lists of them");
  }
  if (list->front().is<int64_t>()) {
    return {prompt_of_ids(*list, param)};
  }
  if (static_cast<int64_t>(list->size()) > most) {
    refuse(param, "holds ", list->size(), " prompts; at most ", most, " are taken at once");
  }
  std::vector<CompletionRequest::Prompt> out;
  for (const Value& each : *list) {
    if (each.text() != nullptr) {
      out.push_back({*each.text(), std::nullopt});
    } else if (each.list() != nullptr) {
      out.push_back(prompt_of_ids(*each.list(), param));
    } else {
      refuse(param, "must be a string, a list of strings, token ids, or a list of lists of them");
    }
  }
  return out;
}

}  // namespace

CompletionRequest parse_chat_request(std::string_view body, const RequestLimits& limits) {
  const BodyFields fields = parse_body(body);
  CompletionRequest out;
  out.chat = true;
  read_settings(fields, limits, out);
  if (fields.find("messages") == nullptr) {
    refuse("messages", "is missing; give [{\"role\": \"user\", \"content\": …}]");
  }
  try {
    out.conversation = conversation_from(fields.object(), "the body");
  } catch (const Error& error) {
    throw ApiError(400, error.what(), "messages");
  }
  if (const jinja::Value* choice = fields.find("tool_choice")) {
    const std::string word = choice->text() == nullptr ? "" : *choice->text();
    if (word == "none") {
      out.conversation.tools = jinja::Value();
    } else if (word != "auto") {
      refuse("tool_choice", "only auto and none are served: the model itself decides");
    }
  }
  if (const jinja::Value* more = fields.find("chat_template_kwargs")) {
    out.template_arguments = *BodyFields(*more, "chat_template_kwargs").object().mapping();
  }
  if (fields.truth("logprobs", false)) {
    out.log_probabilities = fields.integer("top_logprobs", 0, 0, 20);
  }
  return out;
}

CompletionRequest parse_text_request(std::string_view body, const RequestLimits& limits) {
  const BodyFields fields = parse_body(body);
  CompletionRequest out;
  out.config.max_tokens = 16;
  read_settings(fields, limits, out);
  out.prompts = prompts_of(fields, "prompt", limits.answers);
  out.echo = fields.truth("echo", false);
  out.log_probabilities = fields.integer("logprobs", -1, 0, 20);
  if (!fields.text("suffix", "").empty()) {
    refuse("suffix", "is not served");
  }
  if (fields.integer("best_of", out.n, 1, limits.answers) != out.n) {
    refuse("best_of", "is served only where it equals n");
  }
  if (out.n * static_cast<int64_t>(out.prompts.size()) > limits.answers) {
    refuse("n", "with ", out.prompts.size(), " prompts these are more than ", limits.answers,
           " answers at once");
  }
  return out;
}

EmbeddingRequest parse_embedding_request(std::string_view body) {
  const BodyFields fields = parse_body(body);
  EmbeddingRequest out;
  out.model = fields.text("model", "");
  constexpr int64_t most = 256;
  out.inputs = prompts_of(fields, "input", most);
  const std::string format = fields.text("encoding_format", "float");
  if (format != "float" && format != "base64") {
    refuse("encoding_format", "'", format, "' is neither float nor base64");
  }
  out.base64 = format == "base64";
  if (fields.find("dimensions") != nullptr) {
    refuse("dimensions", "is not served: an embedding has the model's width");
  }
  return out;
}

}  // namespace ingot
