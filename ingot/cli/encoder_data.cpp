#include "ingot/cli/encoder_data.h"

#include <algorithm>
#include <set>

#include "ingot/base/hash.h"
#include "ingot/data/shuffle.h"
#include "ingot/data/text_rows.h"
#include "ingot/data/token_text.h"
#include "ingot/tensor/factories.h"
#include "ingot/text/load_tokenizer.h"

namespace ingot {
namespace {

using Rows = Dataset<TokenWindow>;

EncoderTokens tokens_of(const EncoderRecipe& recipe) {
  EncoderTokens out;
  if (recipe.data.tokenizer.empty()) {
    return out;
  }
  out.tokenizer = std::make_shared<const Tokenizer>(load_tokenizer(recipe.data.tokenizer));
  const auto mask = out.tokenizer->id_of("[MASK]");
  const auto other = out.tokenizer->id_of("<mask>");
  check(mask || other || recipe.kind != "mlm", ErrorKind::config,
        "data.tokenizer: ", recipe.data.tokenizer,
        ": has no mask token, [MASK] or <mask>, that hides others");
  out.mask = mask.value_or(other.value_or(-1));
  const auto pad = out.tokenizer->pad();
  out.padding = pad ? *pad : std::max<int64_t>(recipe.model.padding_id, 0);
  const TokenIds frame = out.tokenizer->encode("", {.add_special = true});
  out.before.assign(frame.begin(), frame.empty() ? frame.begin() : frame.begin() + 1);
  out.after.assign(frame.begin() + static_cast<ptrdiff_t>(out.before.size()), frame.end());
  out.vocab = out.tokenizer->vocabulary_size();
  return out;
}

// Rows held in memory; the same in every epoch.
struct Held : Rows {
  std::vector<TokenWindow> rows;

  int64_t size() const override { return static_cast<int64_t>(rows.size()); }
  TokenWindow get(int64_t i) const override { return rows[static_cast<size_t>(i % size())]; }
};

// Windows of a text with what stands around them.
struct Framed : Rows {
  std::shared_ptr<const Rows> windows;
  EncoderTokens tokens;

  int64_t size() const override { return windows->size(); }
  TokenWindow get(int64_t i) const override {
    TokenWindow window = windows->get(i);
    window.pop_back();  // the target of the last token is none here
    window.insert(window.begin(), tokens.before.begin(), tokens.before.end());
    window.insert(window.end(), tokens.after.begin(), tokens.after.end());
    return window;
  }
};

// The first `T` ids of each window, padded.
Tensor padded(const std::vector<TokenWindow>& rows, int64_t T, int64_t padding) {
  std::vector<int64_t> ids;
  for (const TokenWindow& row : rows) {
    for (int64_t t = 0; t < T; ++t) {
      ids.push_back(t < static_cast<int64_t>(row.size()) ? row[static_cast<size_t>(t)] : padding);
    }
  }
  return tensor_of(ids, {static_cast<int64_t>(rows.size()), T});
}

std::vector<TokenWindow> taken(const Rows& data, int64_t first, int64_t count) {
  std::vector<TokenWindow> out;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(data.get(first + i));
  }
  return out;
}

using Maker = std::function<Batch(const Rows& data, int64_t first, int64_t count)>;

void set_batches(const EncoderRecipe& recipe, std::shared_ptr<const Rows> training,
                 std::shared_ptr<const Rows> held_out, const Maker& make, EncoderData& out) {
  check(held_out->size() > 0, ErrorKind::config,
        "data: nothing is held out; raise data.validation_fraction, or name "
        "data.validation_files");
  const auto shuffled =
      std::make_shared<Shuffled<TokenWindow>>(training, static_cast<uint64_t>(recipe.seed));
  const int64_t rows = recipe.train.batch / recipe.train.accumulate;
  const int64_t batch = recipe.evaluate.batch;
  out.rows = training->size();
  out.validation_rows = held_out->size();
  out.batch = [=](int64_t position) { return make(*shuffled, position, rows); };
  out.validation = [=](int64_t index) {
    const int64_t first = index * batch;
    return make(*held_out, first, std::min(batch, held_out->size() - first));
  };
  out.validation_batches = (held_out->size() + batch - 1) / batch;
}

void open_text(const EncoderRecipe& recipe, EncoderData& out) {
  const Text text(recipe.data);
  const EncoderTokens tokens = out.tokens;
  const auto around = static_cast<int64_t>(tokens.before.size() + tokens.after.size());
  const int64_t T = recipe.train.sequence;
  const auto seed = static_cast<uint64_t>(recipe.seed);
  const auto training = std::make_shared<Framed>();
  const auto held_out = std::make_shared<Framed>();
  training->tokens = held_out->tokens = tokens;
  if (tokens.tokenizer) {
    const TokenText read(text, *tokens.tokenizer);
    training->windows = read.training(T - around, seed);
    held_out->windows = read.validation(T - around);
  } else {
    training->windows = text.training(T - around, seed);
    held_out->windows = text.validation(T - around);
  }
  out.hash = text.hash();
  const MaskingTokens masking = {tokens.mask, tokens.vocab, tokens.special()};
  set_batches(
      recipe, training, held_out,
      [=, config = recipe.masking](const Rows& data, int64_t first, int64_t count) {
        return masked_batch(padded(taken(data, first, count), T, tokens.padding), config, masking,
                            seed, first);
      },
      out);
}

struct Divided {
  std::vector<TextRow> training, held_out;
};

Divided rows_of(const EncoderRecipe& recipe, const char* other, std::string& hash) {
  Divided out;
  const auto append = [&](const std::string& file, std::vector<TextRow>& rows) {
    const std::vector<TextRow> more = read_text_rows(file, "text", other);
    rows.insert(rows.end(), more.begin(), more.end());
  };
  check(!recipe.data.files.empty(), ErrorKind::config,
        "data.files: none are named; give the files to train on");
  for (const std::string& file : recipe.data.files) {
    append(file, out.training);
  }
  for (const std::string& file : recipe.data.validation_files) {
    append(file, out.held_out);
  }
  if (recipe.data.validation_files.empty()) {
    const auto held = static_cast<int64_t>(recipe.data.validation_fraction *
                                           static_cast<double>(out.training.size()));
    out.held_out.assign(out.training.end() - held, out.training.end());
    out.training.resize(out.training.size() - static_cast<size_t>(held));
  }
  std::string all;
  for (const auto* rows : {&out.training, &out.held_out}) {
    for (const TextRow& row : *rows) {
      all += concat(row.text.size(), ":", row.text, row.other.size(), ":", row.other);
    }
  }
  hash = hash_hex(all);
  return out;
}

// The rows of a text and its label, the label last.
std::shared_ptr<Held> labelled(const std::vector<TextRow>& rows, const EncoderData& data,
                               int64_t T) {
  auto out = std::make_shared<Held>();
  for (const TextRow& row : rows) {
    const auto at = std::ranges::find(data.labels, row.other);
    check(at != data.labels.end(), ErrorKind::config, "data.validation_files: the label '",
          row.other, "' is not among those that are trained");
    TokenWindow window = data.tokens.framed(row.text, T);
    window.push_back(at - data.labels.begin());
    out->rows.push_back(std::move(window));
  }
  return out;
}

void open_classes(const EncoderRecipe& recipe, EncoderData& out) {
  const Divided rows = rows_of(recipe, "label", out.hash);
  std::set<std::string> labels;
  for (const TextRow& row : rows.training) {
    labels.insert(row.other);
  }
  out.labels.assign(labels.begin(), labels.end());
  check(out.labels.size() > 1, ErrorKind::config, "data.files: all rows have one label: '",
        out.labels.empty() ? "" : out.labels.front(), "'; there is nothing to tell apart");
  const int64_t T = recipe.train.sequence;
  set_batches(
      recipe, labelled(rows.training, out, T), labelled(rows.held_out, out, T),
      [T, padding = out.tokens.padding](const Rows& data, int64_t first, int64_t count) {
        std::vector<TokenWindow> windows = taken(data, first, count);
        std::vector<int64_t> classes;
        for (TokenWindow& window : windows) {
          classes.push_back(window.back());
          window.pop_back();
        }
        return Batch{padded(windows, T, padding), tensor_of(classes, {count}), {}};
      },
      out);
}

// A pair's two texts one after the other, each padded to T.
std::shared_ptr<Held> paired(const std::vector<TextRow>& rows, const EncoderTokens& tokens,
                             int64_t T) {
  auto out = std::make_shared<Held>();
  for (const TextRow& row : rows) {
    TokenWindow window = tokens.framed(row.text, T);
    window.resize(static_cast<size_t>(T), tokens.padding);
    const TokenWindow other = tokens.framed(row.other, T);
    window.insert(window.end(), other.begin(), other.end());
    out->rows.push_back(std::move(window));
  }
  return out;
}

void open_pairs(const EncoderRecipe& recipe, EncoderData& out) {
  const Divided rows = rows_of(recipe, "positive", out.hash);
  const int64_t T = recipe.train.sequence;
  set_batches(
      recipe, paired(rows.training, out.tokens, T), paired(rows.held_out, out.tokens, T),
      [T, padding = out.tokens.padding](const Rows& data, int64_t first, int64_t count) {
        std::vector<TokenWindow> windows = taken(data, first, count);
        for (int64_t i = 0; i < count; ++i) {
          const TokenWindow& both = windows[static_cast<size_t>(i)];
          windows.emplace_back(both.begin() + T, both.end());
        }
        return Batch{padded(windows, T, padding), zeros({count}, DType::i64), {}};
      },
      out);
}

}  // namespace

std::vector<int64_t> EncoderTokens::framed(std::string_view text, int64_t longest) const {
  std::vector<int64_t> out = before;
  if (tokenizer) {
    const TokenIds ids = tokenizer->encode(text);
    out.insert(out.end(), ids.begin(), ids.end());
  } else {
    for (const char letter : text) {
      out.push_back(static_cast<uint8_t>(letter));
    }
  }
  const auto room =
      static_cast<size_t>(longest) - std::min(after.size(), static_cast<size_t>(longest));
  out.resize(std::min(out.size(), room));
  out.insert(out.end(), after.begin(), after.end());
  return out;
}

std::vector<int64_t> EncoderTokens::special() const {
  std::vector<int64_t> out = before;
  out.insert(out.end(), after.begin(), after.end());
  out.push_back(padding);
  for (int64_t id = 0; tokenizer && id < vocab; ++id) {
    if (tokenizer->is_special(static_cast<TokenId>(id))) {
      out.push_back(id);
    }
  }
  if (!tokenizer) {
    out.push_back(mask);
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

EncoderData open_encoder_data(const EncoderRecipe& recipe) {
  EncoderData out;
  out.tokens = tokens_of(recipe);
  check(recipe.model.vocab >= out.tokens.vocab, ErrorKind::config,
        "model.vocab: smaller than what the data is read as: model.vocab is ", recipe.model.vocab,
        ", ", out.tokens.tokenizer ? "the tokenizer has " : "bytes and their four tokens are ",
        out.tokens.vocab);
  if (recipe.kind == "mlm") {
    open_text(recipe, out);
  } else {
    recipe.kind == "classify" ? open_classes(recipe, out) : open_pairs(recipe, out);
  }
  if (out.tokens.tokenizer) {
    out.hash = hash_hex(out.hash + out.tokens.tokenizer->hash());
  }
  return out;
}

Tensor lengths_of(const Tensor& ids, int64_t padding) {
  if (ids.device().kind == DeviceKind::meta) {
    return empty({ids.size(0)}, DType::i32, ids.device());
  }
  const auto values = ids.values<int64_t>();
  const auto T = static_cast<size_t>(ids.size(1));
  std::vector<int32_t> out;
  for (size_t row = 0; row * T < values.size(); ++row) {
    size_t length = T;
    while (length > 1 && values[row * T + length - 1] == padding) {
      --length;
    }
    out.push_back(static_cast<int32_t>(length));
  }
  return tensor_of(out, {ids.size(0)});
}

}  // namespace ingot
