#include "ingot/cli/serve_answer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "ingot/base/error.h"
#include "ingot/cli/generate_arguments.h"
#include "ingot/cli/generate_filter.h"
#include "ingot/cli/token_json.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

// An error of the model or the template is the request's: it names what cannot be read.
template <class F>
auto as_bad_request(const std::string& param, const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) {
      throw;
    }
    throw ApiError(400, error.what(), param);
  }
}

Tokens checked(Tokens tokens, const RequestLimits& limits, const std::string& param) {
  const auto size = static_cast<int64_t>(tokens.size());
  if (size == 0) {
    throw ApiError(400, param + ": holds no tokens", param);
  }
  if (size > limits.context) {
    throw ApiError(400,
                   concat(param, ": is longer than the model's context: ", size,
                          " tokens, context ", limits.context),
                   param, "context_length_exceeded");
  }
  for (const int64_t token : tokens) {
    if (token < 0 || token >= limits.vocab) {
      throw ApiError(
          400,
          concat(param, ": token ", token, " is outside the model's vocabulary of ", limits.vocab),
          param);
    }
  }
  return tokens;
}

// OpenAI's words; "length" for a full context too.
std::string finish_reason(Finish finish, bool by_stop_text) {
  const std::string own = finish_name(finish, by_stop_text);
  return own == "context" ? "length" : own;
}

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

CompletionAnswer::CompletionAnswer(const LoadedModel& loaded, CompletionRequest request,
                                   const RequestLimits& limits, Label label, int64_t random_seed)
    : loaded_(loaded), request_(std::move(request)), label_(std::move(label)) {
  GenerateConfig& config = request_.config;
  if (request_.chat) {
    prompts_.push_back(checked(as_bad_request("messages",
                                              [&] {
                                                return chat_tokens(loaded, request_.conversation,
                                                                   request_.template_arguments);
                                              }),
                               limits, "messages"));
    if (!request_.max_tokens_given) {
      config.max_tokens = limits.max_tokens;
    }
  }
  for (const CompletionRequest::Prompt& prompt : request_.prompts) {
    prompts_.push_back(tokens_of(loaded, prompt, limits, "prompt"));
  }
  config.stop_tokens = loaded.stops();
  config.seed = request_.seed_given ? config.seed : random_seed;
  for (size_t prompt = 0; prompt < prompts_.size(); ++prompt) {
    for (int64_t i = 0; i < request_.n; ++i) {
      choices_.push_back({prompt,
                          AnswerText(loaded.text(), request_.stop_texts, config.stop_tokens),
                          "",
                          {},
                          0,
                          "",
                          false,
                          {}});
    }
  }
}

Tokens CompletionAnswer::tokens_of(const LoadedModel& loaded,
                                   const CompletionRequest::Prompt& prompt,
                                   const RequestLimits& limits, const std::string& param) {
  return checked(prompt.ids
                     ? *prompt.ids
                     : as_bad_request(param, [&] { return loaded.text().prompt(prompt.text); }),
                 limits, param);
}

std::vector<Request> CompletionAnswer::engine_requests() const {
  std::unique_ptr<TokenFilter> filter;
  if (!request_.schema.is<jinja::None>()) {
    filter = as_bad_request("response_format", [&] {
      return filter_for_schema(request_.schema, loaded_, request_.config.stop_tokens);
    });
  } else if (!request_.regex.empty()) {
    filter = as_bad_request("regex", [&] {
      return filter_for(request_.regex, "", loaded_, request_.config.stop_tokens);
    });
  }
  std::vector<Request> out;
  for (size_t i = 0; i < choices_.size(); ++i) {
    Request one;
    one.prompt = prompts_[choices_[i].prompt];
    one.config = request_.config;
    one.choice = static_cast<int64_t>(i) % request_.n;
    one.log_probabilities = request_.log_probabilities;
    one.prompt_log_probabilities = request_.echo && request_.log_probabilities >= 0;
    one.filter = filter ? filter->copy() : nullptr;
    out.push_back(std::move(one));
  }
  return out;
}

Json CompletionAnswer::chunk() const {
  const char* object = request_.chat ? "chat.completion.chunk" : "text_completion";
  Json out = {{"id", label_.id},
              {"object", object},
              {"created", label_.created},
              {"model", label_.model},
              {"choices", Json::array()}};
  if (request_.include_usage) {
    out["usage"] = nullptr;
  }
  return out;
}

Json CompletionAnswer::logprobs(size_t index, const std::vector<Drawn>& drawn,
                                bool with_prompt) const {
  const TextCodec& codec = loaded_.text();
  if (request_.log_probabilities < 0) {
    return nullptr;
  }
  if (request_.chat) {
    return {{"content", log_probabilities_json(codec, drawn)}};
  }
  const Choice& choice = choices_[index];
  std::vector<Drawn> all;
  if (with_prompt && request_.echo) {
    all.push_back({prompts_[choice.prompt].front(), std::nullopt, {}});
    all.insert(all.end(), choice.ended.prompt.begin(), choice.ended.prompt.end());
  }
  all.insert(all.end(), drawn.begin(), drawn.end());
  Json tokens = Json::array(), values = Json::array(), top = Json::array(), offsets = Json::array();
  int64_t offset = 0;
  for (const Drawn& each : all) {
    const std::string text = with_replacements(codec.bytes_of(each.token));
    tokens.push_back(text);
    offsets.push_back(offset);
    offset += utf8_length(text);
    values.push_back(each.log_probability ? number_or_null(*each.log_probability) : Json(nullptr));
    Json best = Json::object();
    for (const auto& [token, log_probability] : each.best) {
      best[with_replacements(codec.bytes_of(token))] = number_or_null(log_probability);
    }
    top.push_back(each.log_probability ? std::move(best) : Json(nullptr));
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(values)},
          {"top_logprobs", std::move(top)},
          {"text_offset", std::move(offsets)}};
}

Json CompletionAnswer::piece(size_t index, const std::string& text, const std::vector<Drawn>& drawn,
                             const std::string& finish) const {
  Json choice = {{"index", index}};
  if (request_.chat) {
    choice["delta"] = finish.empty() || !text.empty() ? Json{{"content", text}} : Json::object();
  } else {
    choice["text"] = text;
  }
  choice["logprobs"] = drawn.empty() ? Json(nullptr) : logprobs(index, drawn, false);
  choice["finish_reason"] = finish.empty() ? Json(nullptr) : Json(finish);
  Json out = chunk();
  out["choices"].push_back(std::move(choice));
  return out;
}

std::string CompletionAnswer::echoed(size_t index) const {
  if (!request_.echo) {
    return "";
  }
  const size_t prompt = choices_[index].prompt;
  return request_.prompts[prompt].ids ? loaded_.text().text(prompts_[prompt])
                                      : request_.prompts[prompt].text;
}

std::vector<std::string> CompletionAnswer::opening() const {
  std::vector<std::string> out;
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (request_.chat) {
      Json first = piece(i, "", {}, "");
      first["choices"][0]["delta"] = {{"role", "assistant"}, {"content", ""}};
      out.push_back(text_of(first));
    } else if (request_.echo) {
      out.push_back(text_of(piece(i, echoed(i), {}, "")));
    }
  }
  return out;
}

std::vector<std::string> CompletionAnswer::take(const AnswerEvent& event) {
  Choice& choice = choices_[event.answer];
  const bool open = choice.finish.empty();
  std::vector<std::string> out;
  if (const Answer* answer = std::get_if<Answer>(&event.what)) {
    if (answer->failure) {
      throw Error(*answer->failure);
    }
    choice.ended = *answer;
    choice.over = true;
    if (open) {
      end_with(event.answer, choice.text.finish(), out);
    }
    return out;
  }
  // Tokens that were drawn before the engine heard of a stop string are none of the answer's.
  const Drawn& drawn = std::get<Drawn>(event.what);
  if (!open) {
    return out;
  }
  ++choice.tokens;
  const std::string text = choice.text.add(drawn.token);
  choice.written += text;
  std::vector<Drawn> fresh;
  if (drawn.log_probability) {
    choice.drawn.push_back(drawn);
    fresh.push_back(drawn);
  }
  if (!text.empty() || !fresh.empty()) {
    out.push_back(text_of(piece(event.answer, text, fresh, "")));
  }
  if (choice.text.ended()) {
    end_with(event.answer, "", out);
  }
  return out;
}

void CompletionAnswer::end_with(size_t index, const std::string& text,
                                std::vector<std::string>& chunks) {
  Choice& choice = choices_[index];
  choice.written += text;
  choice.finish =
      finish_reason(choice.over ? choice.ended.finish : Finish::told, choice.text.ended());
  if (!text.empty()) {
    chunks.push_back(text_of(piece(index, text, {}, "")));
  }
  chunks.push_back(text_of(piece(index, "", {}, choice.finish)));
}

bool CompletionAnswer::done() const {
  return std::all_of(choices_.begin(), choices_.end(),
                     [](const Choice& choice) { return choice.over; });
}

int64_t CompletionAnswer::prompt_tokens() const {
  int64_t total = 0;
  for (const Tokens& prompt : prompts_) {
    total += static_cast<int64_t>(prompt.size());
  }
  return total;
}

int64_t CompletionAnswer::written_tokens() const {
  int64_t total = 0;
  for (const Choice& choice : choices_) {
    total += choice.tokens;
  }
  return total;
}

Json CompletionAnswer::usage() const {
  int64_t shared = 0;
  for (size_t i = 0; i < choices_.size(); i += static_cast<size_t>(request_.n)) {
    shared += choices_[i].ended.shared_tokens;  // the other answers to a prompt always share it
  }
  return {{"prompt_tokens", prompt_tokens()},
          {"completion_tokens", written_tokens()},
          {"total_tokens", prompt_tokens() + written_tokens()},
          {"prompt_tokens_details", {{"cached_tokens", shared}}}};
}

std::vector<std::string> CompletionAnswer::closing() const {
  if (!request_.include_usage) {
    return {};
  }
  Json last = chunk();
  last["usage"] = usage();
  return {text_of(last)};
}

std::string CompletionAnswer::body() const {
  Json out = chunk();
  out["object"] = request_.chat ? "chat.completion" : "text_completion";
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    Json one = {{"index", i}};
    if (request_.chat) {
      one["message"] = {{"role", "assistant"}, {"content", choice.written}};
    } else {
      one["text"] = echoed(i) + choice.written;
    }
    one["logprobs"] = logprobs(i, choice.drawn, true);
    one["finish_reason"] = choice.finish;
    out["choices"].push_back(std::move(one));
  }
  out["usage"] = usage();
  return text_of(out);
}

}  // namespace ingot
