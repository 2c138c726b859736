#include "ingot/generate/scheduler.h"

#include <algorithm>
#include <utility>

#include "ingot/autograd/grad_mode.h"
#include "ingot/kernels/cpu/parallel.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

// Pages so that the cache has room for what was asked for, whole pages a row where it is 0.
int64_t page_count(const SchedulerConfig& config, int64_t context) {
  const auto pages = [&](int64_t tokens) {
    return (tokens + config.page_tokens - 1) / config.page_tokens;
  };
  return config.cache_tokens > 0 ? pages(config.cache_tokens) : config.rows * pages(context);
}

}  // namespace

SchedulerConfig room_for(int64_t rows, int64_t tokens, const std::string& kv) {
  SchedulerConfig out;
  out.rows = rows;
  out.kv = kv;
  out.cache_tokens = rows * ((tokens + out.page_tokens - 1) / out.page_tokens) * out.page_tokens;
  return out;
}

int64_t cache_tokens_within(const Decoder& model, const SchedulerConfig& config, int64_t bytes) {
  const int64_t per_token =
      nn::PagedCache::bytes_per_token(model.cache_shape(1, 1), kv_dtype(model, config.kv));
  const int64_t context =
      (model.config().context + config.page_tokens - 1) / config.page_tokens * config.page_tokens;
  return std::clamp(bytes / std::max<int64_t>(per_token, 1), context, config.rows * context);
}

Scheduler::Scheduler(const Decoder& model, const SchedulerConfig& config)
    : config_(config),
      decoding_(model, page_count(config, model.config().context), config.page_tokens, config.kv) {}

Scheduler::~Scheduler() = default;

int64_t Scheduler::tokens_of(const Request& request) const {
  const int64_t context = decoding_.model().config().context;
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  return std::min(context, prompt + std::min(request.config.max_tokens, context));
}

void Scheduler::check_request(const Request& request) const {
  const DecoderConfig& model = decoding_.model().config();
  const auto size = static_cast<int64_t>(request.prompt.size());
  check(size > 0, ErrorKind::argument, "generate: the prompt is empty; give one token");
  check(size <= model.context, ErrorKind::argument, "generate: the prompt is longer than the ",
        "model's context: ", size, " tokens, context ", model.context);
  for (const int64_t token : request.prompt) {
    check(token >= 0 && token < model.vocab, ErrorKind::argument, "generate: token ", token,
          " of the prompt is outside the model's vocabulary of ", model.vocab);
  }
  const int64_t pages = decoding_.pages_for(tokens_of(request));
  check(pages <= decoding_.pool().pages(), ErrorKind::argument,
        "generate: the request never fits into the cache: it needs ", pages, " pages of ",
        decoding_.page_tokens(), " tokens, the cache has ", decoding_.pool().pages(),
        "; ask for fewer tokens, or give the cache more room");
}

int64_t Scheduler::add(Request request) {
  check_request(request);
  Row row;
  row.number = ++last_;
  row.text.tokens = request.prompt;
  row.request = std::move(request);
  waiting_.push_back(std::move(row));
  return last_;
}

void Scheduler::cancel(int64_t number) {
  const auto is_it = [number](const Row& row) { return row.number == number; };
  if (const auto row = std::find_if(waiting_.begin(), waiting_.end(), is_it);
      row != waiting_.end()) {
    end(*row, Finish::cancelled);
    waiting_.erase(row);
  }
  if (const auto row = std::find_if(running_.begin(), running_.end(), is_it);
      row != running_.end() && !row->done) {
    end(*row, Finish::cancelled);
  }
}

bool Scheduler::step() {
  remove_done();
  admit();
  read_a_prompt();
  write_tokens();
  remove_done();
  return !waiting_.empty() || !running_.empty();
}

void Scheduler::admit() {
  while (!waiting_.empty() && running() < config_.rows) {
    Row& next = waiting_.front();
    if (next.request.config.max_tokens == 0 && !next.request.prompt_log_probabilities) {
      end(next, Finish::length);
      waiting_.pop_front();
      continue;
    }
    const bool shared =
        config_.share_prefixes && !config_.go_on && !next.request.prompt_log_probabilities;
    if (!decoding_.begin(next.text, tokens_of(next.request), shared ? Sharing::yes : Sharing::no)) {
      return;  // those after it wait too, however small: else it might wait for ever
    }
    next.answer.shared_tokens = next.text.held;
    tokens_shared_ += next.text.held;
    running_.push_back(std::move(next));
    waiting_.pop_front();
  }
}

void Scheduler::read_a_prompt() {
  const auto unread = std::find_if(running_.begin(), running_.end(), [](const Row& row) {
    return !row.done && row.answer.tokens.empty();
  });
  if (unread == running_.end()) {
    return;
  }
  Row& row = *unread;
  const int64_t before = row.text.held;
  PagedDecoding::OnHidden each;
  if (row.request.prompt_log_probabilities) {
    each = [&](const Tensor& hidden, int64_t first) { note_prompt(row, hidden, first); };
  }
  const std::optional<Tensor> logits = decoding_.read_page(row.text, each);
  tokens_read_ += row.text.held - before;
  if (logits && row.request.config.max_tokens == 0) {
    end(row, Finish::length);
  } else if (logits) {
    draw(row, logits->values<float>());
    deliver(row);
  }
}

void Scheduler::write_tokens() {
  std::vector<Row*> rows;
  std::vector<PagedText*> texts;
  for (Row& row : running_) {
    if (row.done || row.answer.tokens.empty() || row.text.unread() == 0) {
      continue;
    }
    if (decoding_.outgrown(row.text)) {
      decoding_.read_anew(row.text);
      draw(row, decoding_.read_all(row.text).values<float>());
      deliver(row);
      continue;
    }
    rows.push_back(&row);
    texts.push_back(&row.text);
  }
  if (rows.empty()) {
    return;
  }
  const Tensor logits = decoding_.read_tokens(texts);
  const auto all = logits.values<float>();
  const auto vocab = static_cast<size_t>(logits.size(1));
  kernels::parallel_for(static_cast<int64_t>(rows.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      draw(*rows[i], all.subspan(i * vocab, vocab));
    }
  });
  for (Row* row : rows) {
    deliver(*row);
  }
}

// Of one row alone, so that a row whose logits are broken does not end the others.
void Scheduler::draw(Row& row, std::span<const float> logits) const {
  Request& request = row.request;
  row.drawn = {};
  try {
    std::vector<float> changed;
    std::span<const float> used = logits;
    if (!request.config.rules.change_nothing() || request.filter) {
      changed.assign(logits.begin(), logits.end());
      apply(request.config.rules, row.text.tokens, static_cast<int64_t>(request.prompt.size()),
            changed);
      if (request.filter) {
        request.filter->apply(changed);
      }
      used = changed;
    }
    row.drawn.token = drawn_token(used, request.config,
                                  static_cast<int64_t>(row.text.tokens.size()), request.choice);
    if (request.log_probabilities >= 0) {
      const LogProbabilities raw(logits);
      row.drawn.log_probability = raw.of(row.drawn.token);
      row.drawn.best = raw.best(request.log_probabilities);
    }
  } catch (const Error& error) {
    row.answer.failure = error;
  }
}

void Scheduler::note_prompt(Row& row, const Tensor& hidden, int64_t first) const {
  const NoGrad quiet;
  const Tensor logits = dense(converted(decoding_.model().logits_of(hidden), DType::f32));
  const auto all = logits.values<float>();
  const auto vocab = static_cast<size_t>(logits.size(1));
  const Tokens& prompt = row.request.prompt;
  for (int64_t i = 0; i < logits.size(0); ++i) {
    const auto next = static_cast<size_t>(first + i + 1);
    if (next < prompt.size()) {
      const LogProbabilities raw(all.subspan(static_cast<size_t>(i) * vocab, vocab));
      row.answer.prompt.push_back({prompt[next], raw.of(prompt[next]),
                                   raw.best(std::max<int64_t>(row.request.log_probabilities, 0))});
    }
  }
}

// Adds the token drawn to the row's text, tells it, and sees whether the text ends.
void Scheduler::deliver(Row& row) {
  if (row.answer.failure) {
    end(row, Finish::failed, std::exchange(row.answer.failure, std::nullopt));
    return;
  }
  const GenerateConfig& config = row.request.config;
  row.text.tokens.push_back(row.drawn.token);
  row.answer.tokens.push_back(row.drawn.token);
  ++tokens_written_;
  if (row.request.filter) {
    row.request.filter->accept(row.drawn.token);
  }
  const bool wanted = !row.request.on_token || row.request.on_token(row.drawn);
  const bool full =
      static_cast<int64_t>(row.text.tokens.size()) > decoding_.model().config().context;
  if (is_stop(row.drawn.token, config) || (row.request.filter && row.request.filter->complete())) {
    end(row, Finish::stop);
  } else if (!wanted) {
    end(row, Finish::told);
  } else if (static_cast<int64_t>(row.answer.tokens.size()) >= config.max_tokens) {
    end(row, Finish::length);
  } else if (full && !config_.go_on) {
    end(row, Finish::context);
  }
}

void Scheduler::end(Row& row, Finish finish, std::optional<Error> failure) {
  row.done = true;
  row.answer.finish = finish;
  row.answer.failure = std::move(failure);
  if (row.request.on_end) {
    row.request.on_end(row.answer);
  }
}

void Scheduler::remove_done() {
  for (auto row = running_.begin(); row != running_.end();) {
    if (row->done) {
      decoding_.release(row->text);
      row = running_.erase(row);
    } else {
      ++row;
    }
  }
}

}  // namespace ingot
