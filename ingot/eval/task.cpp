#include "ingot/eval/task.h"

#include <algorithm>
#include <map>
#include <memory>

#include "ingot/base/config_toml.h"
#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/hash.h"
#include "ingot/base/philox.h"
#include "ingot/data/row_reader.h"
#include "ingot/data/shuffle.h"
#include "ingot/text/jinja_json.h"
#include "ingot/text/jinja_template.h"
#include "ingot/text/jinja_text.h"

namespace ingot {
namespace {

using jinja::Mapping;
using jinja::Template;
using jinja::Value;

struct Row {
  std::string place;
  Value fields;
  size_t file = 0;  // which of the task's
};

// The row with the name of its file, without extension, as `_file`.
Value with_file(const Value& row, const std::filesystem::path& path) {
  Mapping out = *row.mapping();
  out.set("_file", path.stem().string());
  return dict_of(std::move(out));
}

// Rows of a JSON file in which they are a member's list.
void add_member_rows(const std::filesystem::path& path, const std::string& member, size_t file,
                     std::vector<Row>& out) {
  const Value all = jinja::parse_json_value(read_file(path), path.string());
  const Value* list = all.mapping() == nullptr ? nullptr : all.mapping()->find(member);
  check(list != nullptr && list->list() != nullptr, ErrorKind::format, path.string(), ": no list '",
        member, "' in it; mend `rows` of the task");
  for (size_t i = 0; i < list->list()->size(); ++i) {
    const Value& row = (*list->list())[i];
    check(row.mapping() != nullptr, ErrorKind::format, path.string(), ": ", member, "[", i,
          "]: not an object");
    out.push_back(
        {concat(path.filename().string(), ":", member, "[", i, "]"), with_file(row, path), file});
  }
}

std::vector<Row> rows_of(const TaskConfig& task, const std::vector<std::string>& files,
                         const std::filesystem::path& data) {
  std::vector<Row> out;
  for (size_t file = 0; file < files.size(); ++file) {
    const std::filesystem::path path = data / files[file];
    if (!task.rows.empty()) {
      add_member_rows(path, task.rows, file, out);
      continue;
    }
    RowOptions options;
    options.columns = task.columns;
    options.separator.clear();
    options.largest_text = INT64_MAX;
    RowReader reader(path, options);
    std::vector<RawRow> block;
    while (reader.next(block)) {
      for (const RawRow& raw : block) {
        out.push_back({concat(path.filename().string(), ":", raw.line),
                       with_file(reader.value(raw), path), file});
      }
    }
  }
  check(!out.empty(), ErrorKind::format, task.name, ": its files hold no rows");
  return out;
}

// The templates of a task.
class Texts {
 public:
  explicit Texts(const TaskConfig& task) : task_(task) {}

  std::string render(const std::string& source, const Row& row) {
    auto& held = templates_[source];
    if (!held) {
      held = std::make_unique<Template>(source, task_.name);
    }
    try {
      // Jinja drops a line end at the end of a template.
      return held->render(*row.fields.mapping()) + (source.ends_with('\n') ? "\n" : "");
    } catch (Error& error) {
      throw error.within(concat("in ", row.place));
    }
  }

  // Each source a text; of a single one that prints a JSON list, its items.
  std::vector<std::string> list(const std::vector<std::string>& sources, const Row& row) {
    std::vector<std::string> out;
    for (const std::string& source : sources) {
      out.push_back(render(source, row));
    }
    if (out.size() == 1 && out.front().starts_with('[')) {
      const Value parsed =
          jinja::parse_json_value(out.front(), concat(task_.name, ": choices of ", row.place));
      out.clear();
      for (const Value& item : *parsed.list()) {
        check(item.text() != nullptr, ErrorKind::format, row.place, ": a choice is no text");
        out.push_back(*item.text());
      }
    }
    return out;
  }

 private:
  const TaskConfig& task_;
  std::map<std::string, std::unique_ptr<Template>> templates_;
};

// "2", "C" or the text of the choice.
int64_t gold_of(const std::string& rendered, const std::vector<std::string>& choices,
                const Row& row) {
  const std::string gold(jinja::stripped(rendered));
  const auto found = std::find(choices.begin(), choices.end(), gold);
  int64_t index = found != choices.end() ? found - choices.begin() : -1;
  if (index < 0 && !gold.empty() && gold.find_first_not_of("0123456789") == std::string::npos &&
      gold.size() < 6) {
    index = std::stoll(gold);
  }
  if (index < 0 && gold.size() == 1 && gold[0] >= 'A' && gold[0] <= 'Z') {
    index = gold[0] - 'A';
  }
  check(index >= 0 && index < static_cast<int64_t>(choices.size()), ErrorKind::format, row.place,
        ": gold '", gold, "' is none of the ", choices.size(), " choices; mend `gold` of the task");
  return index;
}

TaskItem item_of(const TaskConfig& task, Texts& texts, const Row& row, int64_t number) {
  TaskItem out;
  out.row = number;
  out.place = row.place;
  out.fields = row.fields;
  out.question = texts.render(task.prompt, row);
  if (task.kind == "choice") {
    out.answers = texts.list(task.choices, row);
    check(out.answers.size() >= 2, ErrorKind::format, row.place, ": ", out.answers.size(),
          " choices; at least two are needed");
    out.gold = gold_of(texts.render(task.gold, row), out.answers, row);
  } else {
    out.answers = {texts.render(task.target, row)};
  }
  if (task.kind == "contexts") {
    out.contexts = texts.list(task.contexts, row);
    out.gold = gold_of(texts.render(task.gold, row), out.contexts, row);
  }
  if (task.kind == "generate") {
    out.right = out.answers;
    if (!task.aliases.empty()) {
      for (const std::string& alias : texts.list({task.aliases}, row)) {
        out.right.push_back(alias);
      }
    }
  }
  return out;
}

std::string example_text(const TaskConfig& task, const TaskItem& item) {
  const std::string begin =
      task.kind == "contexts" ? item.contexts[static_cast<size_t>(item.gold)] : item.question;
  const std::string& answer =
      item.answers[task.kind == "choice" ? static_cast<size_t>(item.gold) : 0];
  return begin + task.delimiter + answer + task.shot_delimiter;
}

}  // namespace

TaskConfig read_task(const std::filesystem::path& path,
                     const std::vector<std::string>& assignments) {
  TaskConfig out;
  const Fields fields = fields_of(out);
  std::vector<Setting> settings = toml_file_settings(path);
  for (const std::string& assignment : assignments) {
    settings.push_back(command_line_setting(fields, assignment));
  }
  apply_settings(fields, settings);
  const auto need = [&](bool there, const char* key) {
    check(there, ErrorKind::config, path.string(), ": a task of the kind ", out.kind, " needs `",
          key, "`");
  };
  need(!out.name.empty(), "name");
  need(!out.files.empty(), "files");
  need(out.kind != "choice" || (!out.choices.empty() && !out.gold.empty()), "choices and gold");
  need(out.kind != "contexts" || (!out.contexts.empty() && !out.gold.empty()), "contexts and gold");
  need((out.kind != "continuation" && out.kind != "generate" && out.kind != "contexts") ||
           !out.target.empty(),
       "target");
  return out;
}

TaskItems task_items(const TaskConfig& task, const std::filesystem::path& data, int64_t limit,
                     uint64_t seed) {
  const std::vector<Row> rows = rows_of(task, task.files, data);
  Texts texts(task);
  TaskItems out;
  const bool own = task.shot_files.empty();
  const bool paired = own || task.shot_files.size() == task.files.size();
  std::map<size_t, std::vector<TaskItem>> pools;  // that examples are taken from, by file
  if (task.shots > 0) {
    int64_t number = 0;
    for (const Row& row : own ? rows : rows_of(task, task.shot_files, data)) {
      pools[paired && !own ? row.file : 0].push_back(item_of(task, texts, row, number++));
    }
    for (const auto& [file, pool] : pools) {
      check(static_cast<int64_t>(pool.size()) >= task.shots + (own ? 1 : 0), ErrorKind::config,
            task.name, ": ", task.shots, " examples from ", pool.size(), " rows; lower `shots`");
    }
  }
  Hasher hasher;
  const auto n = static_cast<int64_t>(rows.size());
  const int64_t count = limit > 0 ? std::min(limit, n) : n;
  for (int64_t i = 0; i < count; ++i) {
    TaskItem item = item_of(task, texts, rows[static_cast<size_t>(i)], i);
    const Row& row = rows[static_cast<size_t>(i)];
    std::string before = texts.render(task.description, row);
    const std::vector<TaskItem>& pool = pools[paired && !own ? row.file : 0];
    for (int64_t shot = 0, taken = 0; taken < task.shots; ++shot) {
      const auto size = static_cast<int64_t>(pool.size());
      const int64_t at =
          task.shot_order == "first"
              ? shot
              : permuted(shot, size, {seed, static_cast<uint64_t>(i), site_named("eval.shots")});
      if (own && at == i) {
        continue;  // a question is no example of itself
      }
      before += example_text(task, pool[static_cast<size_t>(at)]);
      ++taken;
    }
    hasher.update(std::as_bytes(std::span(before)));
    item.prompt = before + item.question;
    for (std::string& context : item.contexts) {
      context = before + context;
    }
    out.items.push_back(std::move(item));
  }
  out.shots_hash = task.shots > 0 ? hasher.hex() : "";
  return out;
}

}  // namespace ingot
