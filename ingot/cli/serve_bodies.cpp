#include "ingot/cli/serve_bodies.h"

#include <bit>
#include <cstring>

#include "ingot/cli/token_json.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

std::string base64(const std::vector<float>& values) {
  static constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<uint8_t>(bytes[i + j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) {
      out += j <= count ? digits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return out;
}

}  // namespace

std::string error_body(const ApiError& error) {
  const int status = error.status();
  const char* type = status == 401   ? "authentication_error"
                     : status == 404 ? "not_found_error"
                     : status == 429 ? "rate_limit_error"
                     : status >= 500 ? "server_error"
                                     : "invalid_request_error";
  const auto or_null = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  return text_of({{"error",
                   {{"message", error.what()},
                    {"type", type},
                    {"param", or_null(error.param())},
                    {"code", or_null(error.code())}}}});
}

std::string models_body(const std::string& name, int64_t created) {
  return text_of(
      {{"object", "list"},
       {"data",
        Json::array(
            {{{"id", name}, {"object", "model"}, {"created", created}, {"owned_by", "ingot"}}})}});
}

std::string embeddings_body(const EmbeddingRequest& request, const std::string& model,
                            const std::vector<std::vector<float>>& embeddings, int64_t tokens) {
  Json data = Json::array();
  for (size_t i = 0; i < embeddings.size(); ++i) {
    data.push_back(
        {{"object", "embedding"},
         {"index", i},
         {"embedding", request.base64 ? Json(base64(embeddings[i])) : Json(embeddings[i])}});
  }
  return text_of({{"object", "list"},
                  {"data", std::move(data)},
                  {"model", model},
                  {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}});
}

}  // namespace ingot
