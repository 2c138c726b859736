#include "ingot/eval/run_task.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ingot/base/error.h"
#include "ingot/eval/answer.h"
#include "ingot/eval/ifeval.h"
#include "ingot/text/jinja_text.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

using Questions = std::vector<EvalModel::Question>;
using Scores = std::span<const EvalModel::Score>;
using Items = std::span<const TaskItem>;

// A prompt as the model is asked it.
std::string asked(const EvalModel& model, const RunTaskOptions& options,
                  const std::string& prompt) {
  return options.chat ? model.chat(prompt) : prompt;
}

// Of equals the first.
size_t largest(const std::vector<double>& values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

ItemResult choice_result(const TaskItem& item, Scores scores) {
  std::vector<double> sums, by_characters, by_bytes;
  for (size_t i = 0; i < item.answers.size(); ++i) {
    const std::string& answer = item.answers[i];
    sums.push_back(scores[i].log_probability);
    by_characters.push_back(sums.back() /
                            static_cast<double>(std::max<int64_t>(1, utf8_length(answer))));
    by_bytes.push_back(sums.back() / static_cast<double>(std::max<size_t>(1, answer.size())));
  }
  const auto right = [&](const std::vector<double>& values) {
    return static_cast<int64_t>(largest(values)) == item.gold ? 1.0 : 0.0;
  };
  return {
      item.row,
      {{"acc", right(sums)}, {"acc_norm", right(by_characters)}, {"acc_bytes", right(by_bytes)}},
      ""};
}

std::vector<ItemResult> choices(const EvalModel& model, const TaskConfig& task, Items items,
                                const RunTaskOptions& options) {
  Questions questions;
  for (const TaskItem& item : items) {
    for (const std::string& answer : item.answers) {
      const std::string delimiter = options.chat || item.prompt.empty() ? "" : task.delimiter;
      questions.push_back(
          question_of(model, asked(model, options, item.prompt), delimiter + answer, options.chat));
    }
  }
  const std::vector<EvalModel::Score> scores = model.score(questions);
  std::vector<ItemResult> out;
  size_t at = 0;
  for (const TaskItem& item : items) {
    out.push_back(choice_result(item, Scores(scores).subspan(at, item.answers.size())));
    at += item.answers.size();
  }
  return out;
}

std::vector<ItemResult> contexts(const EvalModel& model, const TaskConfig& task, Items items,
                                 const RunTaskOptions& options) {
  check(!options.chat, ErrorKind::config, task.name,
        ": a task of several beginnings has no question for a chat; leave --chat out");
  Questions questions;
  for (const TaskItem& item : items) {
    for (const std::string& context : item.contexts) {
      questions.push_back(question_of(model, context, task.delimiter + item.answers[0]));
    }
  }
  const std::vector<EvalModel::Score> scores = model.score(questions);
  std::vector<ItemResult> out;
  size_t at = 0;
  for (const TaskItem& item : items) {
    std::vector<double> sums;
    for (size_t i = 0; i < item.contexts.size(); ++i) {
      sums.push_back(scores[at++].log_probability);
    }
    out.push_back(
        {item.row, {{"acc", static_cast<int64_t>(largest(sums)) == item.gold ? 1.0 : 0.0}}, ""});
  }
  return out;
}

std::vector<ItemResult> continuations(const EvalModel& model, const TaskConfig& task, Items items,
                                      const RunTaskOptions& options) {
  Questions questions;
  for (const TaskItem& item : items) {
    questions.push_back(question_of(model, asked(model, options, item.prompt),
                                    (options.chat ? "" : task.delimiter) + item.answers[0],
                                    options.chat));
  }
  const std::vector<EvalModel::Score> scores = model.score(questions);
  std::vector<ItemResult> out;
  for (size_t i = 0; i < items.size(); ++i) {
    out.push_back(
        {items[i].row,
         {{"acc", scores[i].greedy ? 1.0 : 0.0}, {"log_likelihood", scores[i].log_probability}},
         ""});
  }
  return out;
}

void score_written(const TaskConfig& task, const TaskItem& item, ItemResult& out) {
  for (const std::string& rule : task.extract) {
    const std::string got = normalized(task.normalize, extracted(rule, out.written));
    const bool right =
        std::any_of(item.right.begin(), item.right.end(),
                    [&](const std::string& one) { return normalized(task.normalize, one) == got; });
    out.scores[task.extract.size() == 1 ? "exact_match" : "exact_match," + rule] = right ? 1 : 0;
  }
}

void score_instructions(const TaskItem& item, ItemResult& out) {
  const jinja::Mapping& row = *item.fields.mapping();
  const jinja::Value* ids = row.find("instruction_id_list");
  const jinja::Value* arguments = row.find("kwargs");
  check(ids != nullptr && ids->list() != nullptr && arguments != nullptr &&
            arguments->list() != nullptr && ids->list()->size() == arguments->list()->size(),
        ErrorKind::format, item.place,
        ": instruction_id_list and kwargs are not equally long lists");
  double strict = 0, loose = 0;
  const auto count = static_cast<double>(ids->list()->size());
  for (size_t i = 0; i < ids->list()->size(); ++i) {
    const std::string* id = (*ids->list())[i].text();
    const jinja::Mapping* given = (*arguments->list())[i].mapping();
    check(id != nullptr && given != nullptr, ErrorKind::format, item.place, ": instruction ", i,
          " is no text with an object of arguments");
    strict += follows_strictly(*id, *given, out.written) ? 1 : 0;
    loose += follows_loosely(*id, *given, out.written) ? 1 : 0;
  }
  out.scores = {{"inst_strict", strict},
                {"inst_loose", loose},
                {"instructions", count},
                {"prompt_strict", strict == count ? 1.0 : 0.0},
                {"prompt_loose", loose == count ? 1.0 : 0.0}};
}

std::vector<ItemResult> writings(const EvalModel& model, const TaskConfig& task, Items items,
                                 const RunTaskOptions& options) {
  std::vector<EvalModel::Prompt> prompts;
  for (const TaskItem& item : items) {
    EvalModel::Prompt prompt;
    prompt.ids = model.encode(asked(model, options, item.prompt), !options.chat, options.chat);
    prompt.until = options.chat ? std::vector<std::string>() : task.until;
    // The beginning of what does not fit is cut off, as lm-evaluation-harness does.
    prompt.max_tokens = std::min(task.max_tokens, model.context - 1);
    const int64_t room = model.context - prompt.max_tokens;
    if (static_cast<int64_t>(prompt.ids.size()) > room) {
      prompt.ids.erase(prompt.ids.begin(), prompt.ids.end() - room);
    }
    if (prompt.ids.empty()) {
      prompt.ids = {model.empty_context};
    }
    prompts.push_back(std::move(prompt));
  }
  const std::vector<EvalModel::Written> written = model.write(prompts);
  std::vector<ItemResult> out;
  for (size_t i = 0; i < items.size(); ++i) {
    ItemResult one{items[i].row, {}, written[i].text};
    if (task.kind == "ifeval") {
      score_instructions(items[i], one);
    } else {
      score_written(task, items[i], one);
    }
    one.scores["ended"] = written[i].ended ? 1 : 0;
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<ItemResult> texts(const EvalModel& model, Items items) {
  std::vector<ItemResult> out;
  for (const TaskItem& item : items) {
    EvalModel::Ids ids = model.encode(item.question, true, false);
    const auto own = static_cast<int64_t>(model.encode(item.question, false, false).size());
    auto known = static_cast<int64_t>(ids.size()) - own;
    if (known <= 0) {
      ids.insert(ids.begin(), model.empty_context);
      known = 1;
    }
    const double words = static_cast<double>(jinja::split(item.question, std::nullopt, -1).size());
    out.push_back({item.row,
                   {{"log_likelihood", model.text_score(ids, known)},
                    {"words", words},
                    {"bytes", static_cast<double>(item.question.size())},
                    {"tokens", static_cast<double>(own)}},
                   ""});
  }
  return out;
}

std::vector<ItemResult> asked_batch(const EvalModel& model, const TaskConfig& task, Items items,
                                    const RunTaskOptions& options) {
  if (task.kind == "choice") {
    return choices(model, task, items, options);
  }
  if (task.kind == "contexts") {
    return contexts(model, task, items, options);
  }
  if (task.kind == "continuation") {
    return continuations(model, task, items, options);
  }
  return task.kind == "text" ? texts(model, items) : writings(model, task, items, options);
}

std::vector<double> values_of(const std::vector<ItemResult>& results, const std::string& score) {
  std::vector<double> out;
  for (const ItemResult& result : results) {
    out.push_back(result.scores.at(score));
  }
  return out;
}

double total_of(const std::vector<ItemResult>& results, const std::string& score) {
  double out = 0;
  for (const double value : values_of(results, score)) {
    out += value;
  }
  return out;
}

}  // namespace

std::vector<ItemResult> run_task(const EvalModel& model, const TaskConfig& task,
                                 const std::vector<TaskItem>& items,
                                 const std::vector<ItemResult>& done,
                                 const RunTaskOptions& options) {
  check(!options.chat || model.chat, ErrorKind::config, task.name,
        ": the model has no chat template; leave --chat out");
  std::map<int64_t, ItemResult> results;
  for (const ItemResult& one : done) {
    results[one.row] = one;
  }
  std::vector<TaskItem> left;
  for (const TaskItem& item : items) {
    if (!results.contains(item.row)) {
      left.push_back(item);
    }
  }
  for (size_t begin = 0; begin < left.size(); begin += static_cast<size_t>(options.batch)) {
    const size_t count = std::min(static_cast<size_t>(options.batch), left.size() - begin);
    const std::vector<ItemResult> batch =
        asked_batch(model, task, Items(left).subspan(begin, count), options);
    for (const ItemResult& one : batch) {
      results[one.row] = one;
    }
    if (options.on_results && !options.on_results(batch)) {
      break;
    }
  }
  std::vector<ItemResult> out;
  for (const TaskItem& item : items) {
    if (const auto found = results.find(item.row); found != results.end()) {
      out.push_back(found->second);
    }
  }
  return out;
}

std::map<std::string, Estimate> summary(const TaskConfig& task,
                                        const std::vector<ItemResult>& results) {
  std::map<std::string, Estimate> out;
  if (results.empty()) {
    return out;
  }
  if (task.kind == "text") {
    const double likelihood = total_of(results, "log_likelihood");
    const double bytes = total_of(results, "bytes");
    check(bytes > 0, ErrorKind::format, task.name, ": nothing to measure: ", results.size(),
          " texts without a byte; rows of JSONL need what the task's prompt names, \"text\" with "
          "--text");
    out["word_perplexity"] = {std::exp(-likelihood / total_of(results, "words")), 0};
    out["byte_perplexity"] = {std::exp(-likelihood / bytes), 0};
    out["bits_per_byte"] = {-likelihood / bytes / std::log(2.0), 0};
    out["token_perplexity"] = {std::exp(-likelihood / total_of(results, "tokens")), 0};
    return out;
  }
  if (task.kind == "ifeval") {
    for (const std::string way : {"strict", "loose"}) {
      out["prompt_" + way] = mean_of(values_of(results, "prompt_" + way));
      const double n = total_of(results, "instructions");
      const double share = total_of(results, "inst_" + way) / n;
      out["inst_" + way] = {share, n > 1 ? std::sqrt(share * (1 - share) / (n - 1)) : 0};
    }
    out["ended"] = mean_of(values_of(results, "ended"));
    return out;
  }
  for (const auto& [name, value] : results.front().scores) {
    if (name == "log_likelihood") {
      out["perplexity"] = perplexity_of(values_of(results, name));
    } else {
      out[name] = mean_of(values_of(results, name));
    }
  }
  return out;
}

}  // namespace ingot
