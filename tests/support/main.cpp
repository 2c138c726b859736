#include <gtest/gtest.h>

#include <iostream>
#include <string>

namespace {

// Ends a run with one line per skipped test, `skipped <name>: <reason>`, which scripts/test.sh
// collects.
class SkipReasons : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.skipped()) {
      reason_ = result.message();
    }
  }

  void OnTestEnd(const testing::TestInfo& test) override {
    if (test.result()->Skipped()) {
      lines_ += std::string("skipped ") + test.test_suite_name() + "." + test.name() + ": " +
                reason_ + "\n";
    }
  }

  void OnTestProgramEnd(const testing::UnitTest&) override { std::cout << lines_; }

  std::string reason_;
  std::string lines_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new SkipReasons);  // the list owns it
  return RUN_ALL_TESTS();
}
