#include "ingot/data/render.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ingot/base/error.h"
#include "ingot/base/hash.h"
#include "ingot/data/fim.h"
#include "ingot/data/layout.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

void append(TokenRow& row, const TokenIds& ids, bool learnt) {
  row.ids.insert(row.ids.end(), ids.begin(), ids.end());
  row.learnt.resize(row.ids.size(), learnt ? 1 : 0);
}

// The content of a plain message.
std::string content_of(const Message& message) {
  const jinja::Value* content = message.fields.find("content");
  return content != nullptr && content->text() != nullptr ? *content->text() : "";
}

// Byte-level tokenizers cut a text anywhere into parts of which each can be encoded by itself.
TokenRow of_parts(const TrainingText& text, const Tokenizer& tokenizer) {
  TokenRow row;
  const std::string_view all = text.text;
  size_t at = 0;
  const auto put = [&](size_t end, bool learnt) {
    if (end > at) {
      append(row, tokenizer.encode(all.substr(at, end - at), {.parse_special = true}), learnt);
      at = end;
    }
  };
  for (const Span& span : text.learnt) {
    put(span.begin, false);
    put(span.end, true);
  }
  put(all.size(), false);
  return row;
}

// Others put marks at the start of a text, so the whole is encoded, and a place in the text is
// found by how many ids its beginning shares with the whole.
TokenRow of_whole(const TrainingText& text, const Tokenizer& tokenizer) {
  TokenRow row;
  append(row, tokenizer.encode(text.text, {.parse_special = true}), false);
  const auto tokens_before = [&](size_t byte) {
    const TokenIds start =
        tokenizer.encode(std::string_view(text.text).substr(0, byte), {.parse_special = true});
    const auto differ = std::mismatch(start.begin(), start.end(), row.ids.begin(), row.ids.end());
    return differ.first - start.begin();
  };
  for (const Span& span : text.learnt) {
    const auto begin = tokens_before(span.begin);
    const auto end = span.end == text.text.size() ? row.size() : tokens_before(span.end);
    std::fill(row.learnt.begin() + begin, row.learnt.begin() + std::max(begin, end), uint8_t{1});
  }
  return row;
}

}  // namespace

int64_t TokenRow::targets() const {
  return learnt.empty() ? 0 : std::accumulate(learnt.begin() + 1, learnt.end(), int64_t{0});
}

Renderer::Renderer(std::shared_ptr<const Tokenizer> tokenizer,
                   std::shared_ptr<const ChatTemplate> chat, RenderOptions options)
    : tokenizer_(std::move(tokenizer)), chat_(std::move(chat)), options_(std::move(options)) {}

TokenRow tokens_of(const TrainingText& text, const Tokenizer& tokenizer) {
  const bool apart =
      tokenizer.is_byte_level() && tokenizer.spec().normalizer == "null" &&
      tokenizer.spec().pre_tokenizer.find("\"add_prefix_space\":true") == std::string::npos;
  return apart ? of_parts(text, tokenizer) : of_whole(text, tokenizer);
}

std::vector<TrainingText> Renderer::chat_texts(const Example& example) const {
  check(chat_ != nullptr, ErrorKind::config, example.place.text(),
        ": a conversation needs a chat template, and the model has none; set data.template = "
        "\"chatml\", or to a file with a Jinja template");
  MaskOptions options;
  options.roles = options_.roles;
  try {
    return training_texts(*chat_, example.conversation, options);
  } catch (const RowError&) {
    throw;
  } catch (const Error& error) {
    const std::string_view what = error.what();
    const bool none = what.find("nothing of it is learnt") != std::string_view::npos;
    throw RowError(none ? RowFault::untrained : RowFault::rendering,
                   concat(example.place.text(), ": ", what));
  }
}

void Renderer::append_document(const Example& example, TokenRow& row) const {
  const FimOptions& fim = options_.fim;
  const RandomKey key{fim.seed, content_hash(example), site_named("data.fim")};
  const Philox random({fim.seed, key.step, site_named("data.fim.choice")});
  if (fim.rate == 0 || random.uniform_f64(0) >= fim.rate) {
    append(row, tokenizer_->encode(example.text), true);
    return;
  }
  const auto [begin, end] = fim_cuts(utf8_length(example.text), key);
  const FimOrder order = random.uniform_f64(1) < fim.spm_rate ? FimOrder::spm_v2 : FimOrder::psm;
  for (const FimPart& part : fim_parts(example.text, begin, end, order)) {
    append(row, {fim.tokens[static_cast<size_t>(part.sentinel)]}, true);
    append(row, tokenizer_->encode(part.text), true);
  }
}

std::array<TokenId, 3> fim_tokens(const Tokenizer& tokenizer) {
  constexpr std::array<std::array<std::string_view, 3>, 5> spellings = {{
      {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
      {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
      {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
      {"<PRE>", "<SUF>", "<MID>"},
      {"▁<PRE>", "▁<SUF>", "▁<MID>"},
  }};
  for (const auto& words : spellings) {
    const auto prefix = tokenizer.id_of(words[0]);
    const auto suffix = tokenizer.id_of(words[1]);
    const auto middle = tokenizer.id_of(words[2]);
    if (prefix && suffix && middle) {
      return {*prefix, *suffix, *middle};
    }
  }
  throw Error(ErrorKind::config,
              concat("data.fim_rate: the tokenizer ", tokenizer.spec().source,
                     " has no tokens for filling in, such as <|fim_prefix|>, <|fim_suffix|> and "
                     "<|fim_middle|>; add them with data.add_tokens, or set data.fim_rate = 0"));
}

TokenRow Renderer::joined(const Example& example) const {
  TokenRow row;
  if (options_.begin_text) {
    append(row, tokenizer_->frame().before, false);
  }
  const bool document = example.kind == ExampleKind::text;
  if (document) {
    append_document(example, row);
  } else {
    for (const Message& message : example.conversation.messages) {
      const bool answer = role_of(message) == "assistant";
      append(row, tokenizer_->encode(content_of(message)),
             options_.learn == Learn::all || message.train.value_or(answer));
    }
  }
  if (options_.end_text) {
    check(tokenizer_->eos().has_value(), ErrorKind::config, tokenizer_->spec().source,
          ": the tokenizer has no end-of-text token, so the model could not learn to stop; name "
          "eos_token in tokenizer_config.json, or set data.template");
    append(row, {*tokenizer_->eos()}, true);
  }
  return row;
}

std::vector<TokenRow> Renderer::operator()(const Example& example) const {
  const bool document = example.kind == ExampleKind::text;
  check(document || example.kind == ExampleKind::chat, ErrorKind::config, example.place.text(),
        ": holds a ", name(example.kind),
        ", which is no conversation; this kind of training reads text and chats");
  std::vector<TokenRow> rows;
  if (document || example.plain) {
    rows.push_back(joined(example));
  } else {
    for (const TrainingText& text : chat_texts(example)) {
      rows.push_back(tokens_of(text, *tokenizer_));
      if (options_.learn == Learn::all) {
        std::fill(rows.back().learnt.begin(), rows.back().learnt.end(), uint8_t{1});
      }
    }
  }
  int64_t targets = 0;
  for (const TokenRow& row : rows) {
    targets += row.targets();
    const auto bos = tokenizer_->bos();
    const auto count =
        bos && bos != tokenizer_->eos() ? std::count(row.ids.begin(), row.ids.end(), *bos) : 0;
    check_row(count <= 1, RowFault::rendering, example.place.text(), ": the text holds ", count,
              " beginning-of-text tokens, '", bos ? tokenizer_->token(*bos) : "",
              "'; it may hold one: take them out of the row or of the template");
  }
  check_row(targets > 0, RowFault::untrained, example.place.text(),
            ": no token of the row would be learnt; learn other roles, or leave the row out");
  std::erase_if(rows, [](const TokenRow& row) { return row.targets() == 0; });
  return rows;
}

std::vector<TrainingText> Renderer::texts(const Example& example) const {
  if (example.kind != ExampleKind::text && !example.plain) {
    return chat_texts(example);
  }
  const std::string end =
      options_.end_text && tokenizer_->eos() ? tokenizer_->token(*tokenizer_->eos()) : "";
  TrainingText out;
  if (example.kind == ExampleKind::text) {
    out.text = example.text + end;
    out.learnt = {{0, out.text.size()}};
    out.turns = {0};
    return {out};
  }
  for (size_t i = 0; i < example.conversation.messages.size(); ++i) {
    const Message& message = example.conversation.messages[i];
    const size_t begin = out.text.size();
    out.text += content_of(message);
    if (options_.learn == Learn::all || message.train.value_or(role_of(message) == "assistant")) {
      out.learnt.push_back({begin, out.text.size()});
      out.turns.push_back(i);
    }
  }
  out.text += end;
  if (!out.learnt.empty()) {
    out.learnt.back().end = out.text.size();
  }
  return {out};
}

std::string Renderer::hash() const {
  std::string all = concat(options_.learn == Learn::all ? "all" : "answers", options_.end_text,
                           options_.begin_text, options_.fim.rate, " ", options_.fim.spm_rate, " ",
                           options_.fim.seed, "\n");
  for (const std::string& role : options_.roles) {
    all += role + "\n";
  }
  if (chat_ != nullptr) {
    all += chat_->hash();
  }
  return hash_hex(all);
}

std::string shown(const TokenRow& row, const Tokenizer& tokenizer, Colours colours) {
  TrainingText text;
  for (size_t i = 0; i < row.ids.size();) {
    size_t end = i;
    while (end < row.ids.size() && row.learnt[end] == row.learnt[i]) {
      ++end;
    }
    const size_t begin = text.text.size();
    text.text += tokenizer.decode(std::span(row.ids).subspan(i, end - i), {.skip_special = false});
    if (row.learnt[i] != 0) {
      text.learnt.push_back({begin, text.text.size()});
    }
    i = end;
  }
  return shown(text, colours);
}

}  // namespace ingot
