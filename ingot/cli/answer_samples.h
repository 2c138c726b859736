#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "ingot/base/hash.h"
#include "ingot/cli/recipe.h"
#include "ingot/data/example_reader.h"
#include "ingot/data/render.h"
#include "ingot/posttrain/answer_rows.h"

namespace ingot {

// One row of the data as tokens.
struct AnswerSample {
  std::vector<AnswerRow> answers;  // chosen, rejected; or one
  double margin = 0;               // of the scores, where the row has them
  bool wanted = true;
};
using AnswerSamples = std::vector<AnswerSample>;

// Those of a run's files.
struct AnswerSplit {
  std::shared_ptr<AnswerSamples> training = std::make_shared<AnswerSamples>();
  std::shared_ptr<AnswerSamples> held_out = std::make_shared<AnswerSamples>();
  int64_t dropped = 0, cut = 0;
  std::string first_long;  // place and length of the first that is too long
  RowCounts counts;
  Hasher content;

  std::string sizes(const char* what) const;  // in words
};

// Reads the recipe's files, rows of these kinds. Errors name file and line.
void read_answers(const Recipe& recipe, const Renderer& renderer,
                  std::initializer_list<ExampleKind> kinds, AnswerSplit& out);

// Cuts a row to `longest` inputs; false where nothing of the answer is left.
bool cut_to(AnswerRow& row, int64_t longest);

// Pairs taken apart into a wanted and an unwanted answer.
void take_apart(AnswerSamples& samples);

}  // namespace ingot
