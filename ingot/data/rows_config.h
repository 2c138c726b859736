#pragma once

#include <string>
#include <vector>

#include "ingot/base/describe.h"
#include "ingot/data/token_rows.h"
#include "ingot/data/tokenize.h"

namespace ingot {

// How rows of data files become what a run trains on: the keys of a recipe's [data].
struct RowsConfig {
  std::string format = "auto";
  std::string layout = "auto";
  std::string separator = "<|endoftext|>";
  std::string policy = "error";
  std::string duplicates = "keep";
  std::string order = "strict";
  std::string chat;  // template
  std::vector<std::string> add_tokens;
  std::string learn = "answers";
  std::vector<std::string> roles = {"assistant"};
  std::string long_rows = "truncate";
  std::string packing = "best_fit";
  std::vector<double> weights;
  std::vector<int64_t> caps;
  double fim_rate = 0;
  double fim_spm_rate = 0.5;
  std::string store;

  template <class V>
  void describe(V& v) {
    v("format", format, one_of({"auto", "text", "jsonl", "json", "csv"}),
      "of the files; auto: by their first characters and names");
    v("layout", layout,
      one_of({"auto", "text", "completion", "alpaca", "sharegpt", "messages", "tree", "preference",
              "label", "ranked", "generated"}),
      "of the rows; auto: by their keys");
    v("separator", separator, "line of a text file that ends a document");
    v("policy", policy, one_of({"error", "drop"}),
      "of a row that cannot be used: stop and name it, or leave it out and count");
    v("duplicates", duplicates, one_of({"keep", "drop", "error"}), "of rows that say the same");
    v("order", order, one_of({"strict", "any"}),
      "whether roles must follow one another as in a conversation");
    v("template", chat, "chat template: chatml, or a file with one; empty: the model's own");
    v("add_tokens", add_tokens,
      "special tokens to add to the tokenizer; they start as the mean of all");
    v("learn", learn, one_of({"answers", "all"}),
      "what the loss counts: the learnt roles' turns, or every token");
    v("roles", roles, "roles whose turns are learnt, unless a message says \"train\"");
    v("long", long_rows, one_of({"drop", "truncate", "split", "raise"}),
      "what becomes of a row longer than train.sequence");
    v("packing", packing, one_of({"best_fit", "none"}),
      "several rows in one sequence, none seeing another, or each by itself");
    v("weights", weights, at_least(0),
      "share of each file in the mixture; empty: as many as they hold");
    v("caps", caps, at_least(0), "rows used of each file at most; 0: all");
    v("fim_rate", fim_rate, in(0, 1), "share of documents turned to fill in the middle");
    v("fim_spm_rate", fim_spm_rate, in(0, 1), "of these, share with the suffix first");
    v("store", store, "folder for the rows as tokens; empty: found beside the run by content");
  }
};

TokenizeOptions tokenize_options(const RowsConfig& config);
RenderOptions render_options(const RowsConfig& config, const Tokenizer& tokenizer, uint64_t seed);
TokenRowsOptions token_rows_options(const RowsConfig& config, int64_t sequence);

}  // namespace ingot
