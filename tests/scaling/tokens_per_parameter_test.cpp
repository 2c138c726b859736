#include "ingot/scaling/tokens_per_parameter.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

// Hoffmann et al. 2022, section 4: Chinchilla, 70 billion parameters on 1.4 trillion tokens; Brown
// et al. 2020, table 2.1: GPT-3, 175 billion on 300 billion.
TEST(TokensPerParameter, LabelsKnownModels) {
  const int64_t billion = 1'000'000'000;
  const TokensPerParameter chinchilla{1400 * billion, 70 * billion, 70 * billion};
  EXPECT_EQ(chinchilla.total(), 20);
  EXPECT_STREQ(chinchilla.label(), "near");
  const TokensPerParameter gpt3{300 * billion, 175 * billion, 174 * billion};
  EXPECT_STREQ(gpt3.label(), "below");
  EXPECT_NEAR(gpt3.total(), 1.714, 1e-3);
  const TokensPerParameter llama3{15000 * billion, 8 * billion, 7 * billion};
  EXPECT_STREQ(llama3.label(), "above");
}

TEST(TokensPerParameter, SaysBothRatios) {
  EXPECT_EQ((TokensPerParameter{2000, 100, 80}.text()),
            "20 tokens per parameter (25 without embeddings), near the compute-optimal 20");
  EXPECT_EQ((TokensPerParameter{2000, 100, 0}.without_embeddings()), 0);  // embeddings alone
}

}  // namespace
}  // namespace ingot
