#include "ingot/data/masked_tokens.h"

#include "ingot/base/error.h"
#include "ingot/data/batch.h"

namespace ingot {

MaskedTokens masked_tokens(std::span<const int64_t> ids, const RandomKey& key,
                           const MaskedTokensConfig& config,
                           const std::function<bool(int64_t)>& is_special) {
  const auto share = [](double x) { return x >= 0 && x <= 1; };
  check(share(config.rate) && share(config.mask_share) && share(config.random_share) &&
            config.mask_share + config.random_share <= 1,
        ErrorKind::argument,
        "masked tokens: rate, mask_share and random_share must lie in 0 to 1, "
        "the last two together too: they are ",
        config.rate, ", ", config.mask_share, " and ", config.random_share);
  check(config.mask_token >= 0 && config.mask_token < config.vocabulary, ErrorKind::argument,
        "masked tokens: the mask token ", config.mask_token, " is outside the vocabulary of ",
        config.vocabulary);
  const Philox random(key);
  MaskedTokens out;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t id = ids[i];
    out.ids.push_back(id);
    out.labels.push_back(ignored_label);
    if ((is_special && is_special(id)) || random.uniform_f64(3 * i) >= config.rate) {
      continue;
    }
    out.labels.back() = id;
    const double fate = random.uniform_f64(3 * i + 1);
    if (fate < config.mask_share) {
      out.ids.back() = config.mask_token;
    } else if (fate < config.mask_share + config.random_share) {
      out.ids.back() =
          static_cast<int64_t>(random.bits(3 * i + 2) % static_cast<uint64_t>(config.vocabulary));
    }
  }
  return out;
}

}  // namespace ingot
