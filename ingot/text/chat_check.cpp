#include "ingot/text/chat_check.h"

#include <algorithm>
#include <array>

#include "ingot/base/error.h"
#include "ingot/base/value.h"
#include "ingot/text/jinja_json.h"
#include "ingot/text/jinja_text.h"

namespace ingot {
namespace {

using State = ChatFinding::State;

struct Sample {
  std::string name;
  Conversation conversation;
};

constexpr std::array<std::string_view, 3> answers = {"Answer one.", "Answer two.", "Answer three."};
constexpr std::array<std::string_view, 3> questions = {"Question one?", "Question two?",
                                                       "Question three?"};

Sample plain_sample(size_t exchanges, bool system) {
  Sample out;
  out.name =
      concat(exchanges, exchanges == 1 ? " exchange" : " exchanges", system ? ", system" : "");
  if (system) {
    out.conversation.messages.push_back(make_message("system", "Be brief."));
  }
  for (size_t i = 0; i < exchanges; ++i) {
    out.conversation.messages.push_back(make_message("user", questions[i]));
    out.conversation.messages.push_back(make_message("assistant", answers[i]));
  }
  return out;
}

Sample tool_sample() {
  return {"1 call, tools", parse_conversation(R"({
    "messages": [
      {"role": "user", "content": "How warm is it in Rome?"},
      {"role": "assistant", "content": "", "tool_calls": [{"id": "call00001", "type": "function",
        "function": {"name": "weather", "arguments": {"city": "Rome"}}}]},
      {"role": "tool", "name": "weather", "tool_call_id": "call00001", "content": "21"},
      {"role": "assistant", "content": "Answer one."}],
    "tools": [{"type": "function", "function": {"name": "weather", "description": "The weather.",
      "parameters": {"type": "object", "properties": {"city": {"type": "string",
        "description": "A city."}}, "required": ["city"]}}}]})",
                                              "sample")};
}

class Checker {
 public:
  Checker(const ChatTemplate& chat, const ChatCheckOptions& options)
      : chat_(chat), options_(options), stops_(options.mask.stops) {
    if (stops_.empty() && !chat.token("eos_token").empty()) {
      stops_.push_back(chat.token("eos_token"));
    }
  }

  void sample(const Sample& sample) {
    name_ = sample.name;
    std::string whole;
    try {
      whole = chat_.apply(sample.conversation, options_.mask.apply);
    } catch (const Error& error) {
      const std::string_view what = error.what();
      const bool refuses = what.find("the template refuses: ") != std::string_view::npos;
      return add("renders", refuses ? State::note : State::bad, std::string(what));
    }
    beginning(whole);
    std::vector<TrainingText> rows;
    try {
      rows = training_texts(chat_, sample.conversation, options_.mask);
    } catch (const Error& error) {
      return add("prefix", State::bad, error.what());
    }
    add("prefix", State::good, "training and inference see the same text before each answer");
    for (const TrainingText& row : rows) {
      ends(row);
      ids(row);
    }
    add("texts", rows.size() == 1 ? State::good : State::note,
        rows.size() == 1 ? "one text trains all turns"
                         : concat("earlier turns are rewritten: ", rows.size(),
                                  " texts train the turns one by one"));
  }

  std::vector<ChatFinding> take() { return std::move(findings_); }

 private:
  void add(std::string subject, State state, std::string found) {
    findings_.push_back({name_, std::move(subject), state, std::move(found)});
  }

  void beginning(const std::string& whole) {
    const std::string bos = chat_.token("bos_token");
    if (bos.empty()) {
      return add("BOS", State::good, "the model has none");
    }
    const int64_t count = jinja::count_of(whole, bos);
    const bool first = count == 0 || whole.starts_with(bos);
    std::string found = concat(in_quotes(bos), " ", count, count == 1 ? " time" : " times",
                               first ? "" : ", not at the start");
    bool good = count <= 1 && first;
    if (options_.encode && options_.bos_id) {
      const std::vector<int64_t> all = options_.encode(whole);
      const auto among = std::count(all.begin(), all.end(), *options_.bos_id);
      found += concat(", among the ids ", among);
      good = good && among <= 1;
    }
    add("BOS", good ? State::good : State::bad, std::move(found));
  }

  // What the model learns to write behind its last answer of the text.
  void ends(const TrainingText& row) {
    for (const Span& span : row.learnt) {
      const std::string_view learnt =
          std::string_view(row.text).substr(span.begin, span.end - span.begin);
      const bool stopped =
          std::any_of(stops_.begin(), stops_.end(),
                      [learnt](const std::string& stop) { return learnt.ends_with(stop); });
      std::string_view tail = learnt;
      for (const std::string_view answer : answers) {
        const size_t at = learnt.rfind(answer);
        tail = at == std::string_view::npos ? tail : learnt.substr(at + answer.size());
      }
      std::string known;
      for (const std::string& stop : stops_) {
        known += (known.empty() ? "" : ", ") + in_quotes(stop);
      }
      add("turn end", stopped ? State::good : State::bad,
          stopped ? concat(in_quotes(tail), " is learnt and stops")
                  : concat("the turn ends in ", in_quotes(tail),
                           ", which holds no stop; stops are ", known.empty() ? "none" : known));
    }
  }

  void ids(const TrainingText& row) {
    if (!options_.encode) {
      return;
    }
    const std::vector<int64_t> whole = options_.encode(row.text);
    for (const Span& span : row.learnt) {
      const std::string before = row.text.substr(0, span.begin);
      const std::vector<int64_t> prefix = options_.encode(before);
      const auto same = std::mismatch(prefix.begin(), prefix.end(), whole.begin(), whole.end());
      const bool good = same.first == prefix.end();
      add("prefix ids", good ? State::good : State::bad,
          good ? concat(prefix.size(), " ids, the same")
               : concat("of ", prefix.size(), " ids the first ", same.first - prefix.begin(),
                        " agree: the tokenizer joins the prompt's end with the answer"));
    }
  }

  const ChatTemplate& chat_;
  const ChatCheckOptions& options_;
  std::vector<std::string> stops_;
  std::string name_;
  std::vector<ChatFinding> findings_;
};

// Whether the template shows tools at all.
bool takes_tools(const ChatTemplate& chat, const ChatCheckOptions& options) {
  const Sample with = tool_sample();
  const std::span<const Message> first = std::span(with.conversation.messages).first(1);
  try {
    return chat.apply(first, with.conversation.tools, options.mask.apply) !=
           chat.apply(first, jinja::Value(), options.mask.apply);
  } catch (const Error&) {
    return true;  // it looks at them; the check will say what is wrong
  }
}

}  // namespace

std::vector<ChatFinding> check_chat(const ChatTemplate& chat, const ChatCheckOptions& options) {
  Checker checker(chat, options);
  for (const bool system : {false, true}) {
    for (size_t exchanges = 1; exchanges <= answers.size(); ++exchanges) {
      checker.sample(plain_sample(exchanges, system));
    }
  }
  if (takes_tools(chat, options)) {
    checker.sample(tool_sample());
  }
  return checker.take();
}

bool is_good(const std::vector<ChatFinding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const ChatFinding& one) { return one.state == State::bad; });
}

std::string text_of(const std::vector<ChatFinding>& findings, Colours colours) {
  struct Mark {
    std::string_view plain, colour;
  };
  constexpr std::array<Mark, 3> marks = {{{"✓", "\x1b[32m"}, {"✗", "\x1b[31m"}, {"·", ""}}};
  size_t name_width = 0;
  size_t subject_width = 0;
  for (const ChatFinding& one : findings) {
    name_width = std::max(name_width, one.conversation.size());
    subject_width = std::max(subject_width, one.subject.size());
  }
  std::string out;
  for (const ChatFinding& one : findings) {
    const Mark& mark = marks[static_cast<size_t>(one.state)];
    const bool coloured = colours == Colours::terminal && !mark.colour.empty();
    out += concat("  ", coloured ? mark.colour : "", mark.plain, coloured ? "\x1b[0m" : "", " ",
                  one.conversation, std::string(name_width - one.conversation.size() + 2, ' '),
                  one.subject, std::string(subject_width - one.subject.size() + 2, ' '), one.found,
                  "\n");
  }
  return out;
}

}  // namespace ingot
