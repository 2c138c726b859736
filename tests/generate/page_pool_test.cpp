#include "ingot/generate/page_pool.h"

#include <gtest/gtest.h>

#include <set>

#include "ingot/base/philox.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

TEST(PagePool, GivesEveryPageOnceUntilItIsGivenBack) {
  PagePool pool(3);
  const std::set<int32_t> taken = {pool.take(), pool.take(), pool.take()};
  EXPECT_EQ(taken, (std::set<int32_t>{0, 1, 2}));
  EXPECT_EQ(pool.free(), 0);
  expect_error([&] { pool.take(); }, "page pool: all 3 pages are taken");
  pool.give_back(1);
  EXPECT_EQ(pool.take(), 1);
  pool.share(1);
  pool.give_back(1);
  EXPECT_EQ(pool.free(), 0);
  pool.give_back(1);
  EXPECT_EQ(pool.free(), 1);
  expect_error([&] { pool.give_back(1); }, "page 1 has no user");
}

TEST(PagePool, FindsAPageByItsTokensAndAllBeforeIt) {
  PagePool pool(4);
  const Tokens a = {1, 2}, b = {3, 4};
  const int32_t first = pool.take();
  const int32_t second = pool.take();
  const auto name_a = pool.name(first, PagePool::root, a);
  const auto name_ab = pool.name(second, name_a, b);
  EXPECT_NE(name_a, name_ab);
  ASSERT_TRUE(pool.find(PagePool::root, a));
  EXPECT_EQ(pool.find(name_a, b)->page, second);
  EXPECT_FALSE(pool.find(PagePool::root, b));  // the same tokens after others are another page
  EXPECT_FALSE(pool.find(name_ab, b));
  EXPECT_EQ(pool.name(pool.take(), PagePool::root, a), name_a);  // read twice: the first keeps it
}

TEST(PagePool, KeepsNamedPagesUntilTheirRoomIsNeededTheLongestUnusedFirst) {
  PagePool pool(3);
  const Tokens a = {1}, b = {2};
  const int32_t first = pool.take();
  const int32_t second = pool.take();
  pool.name(first, PagePool::root, a);
  pool.name(second, PagePool::root, b);
  pool.give_back(first);
  pool.give_back(second);
  EXPECT_EQ(pool.free(), 3);
  pool.take();                                // the page that never had a name
  ASSERT_TRUE(pool.find(PagePool::root, a));  // used again, and so younger than b
  pool.give_back(first);
  EXPECT_EQ(pool.take(), second);
  EXPECT_FALSE(pool.find(PagePool::root, b));
  ASSERT_TRUE(pool.find(PagePool::root, a));
}

// Texts that come and go at random: no page is ever given to two, and all come back.
TEST(PagePool, StandsARandomWalkOfTakingSharingAndGivingBack) {
  PagePool pool(17);
  const Philox random({3, 0, 0});
  std::vector<int32_t> held;
  std::vector<int64_t> uses(17, 0);
  for (uint64_t i = 0; i < 20000; ++i) {
    const uint32_t word = random.word(i);
    if (word % 3 == 0 && pool.free() > 0) {
      const int32_t page = pool.take();
      EXPECT_EQ(uses[static_cast<size_t>(page)]++, 0);
      held.push_back(page);
      if (word % 2 == 0) {
        pool.name(page, PagePool::root, Tokens{word % 64});
      }
    } else if (word % 3 == 1) {
      if (const auto found = pool.find(PagePool::root, Tokens{word / 3 % 64})) {
        ++uses[static_cast<size_t>(found->page)];
        held.push_back(found->page);
      }
    } else if (!held.empty()) {
      const size_t at = word / 3 % held.size();
      --uses[static_cast<size_t>(held[at])];
      pool.give_back(held[at]);
      held.erase(held.begin() + static_cast<int64_t>(at));
    }
    const int64_t used = static_cast<int64_t>(std::set<int32_t>(held.begin(), held.end()).size());
    ASSERT_EQ(pool.used(), used);
  }
}

}  // namespace
}  // namespace ingot::testing
