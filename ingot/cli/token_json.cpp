#include "ingot/cli/token_json.h"

#include <cmath>

#include "ingot/text/utf8.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json one_token(const TextCodec& codec, int64_t token, double log_probability) {
  const std::string bytes = codec.bytes_of(token);
  Json numbers = Json::array();
  for (const char byte : bytes) {
    numbers.push_back(static_cast<uint8_t>(byte));
  }
  return {{"token", with_replacements(bytes)},
          {"id", token},
          {"logprob", number_or_null(log_probability)},
          {"bytes", std::move(numbers)}};
}

}  // namespace

Json log_probabilities_json(const TextCodec& codec, const std::vector<Drawn>& tokens) {
  Json out = Json::array();
  for (const Drawn& drawn : tokens) {
    Json entry = one_token(codec, drawn.token, drawn.log_probability.value_or(NAN));
    Json top = Json::array();
    for (const auto& [token, log_probability] : drawn.best) {
      top.push_back(one_token(codec, token, log_probability));
    }
    entry["top_logprobs"] = std::move(top);
    out.push_back(std::move(entry));
  }
  return out;
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ingot
