#include "ingot/text/chat_mask.h"

#include <algorithm>
#include <ctime>
#include <optional>

#include "ingot/base/error.h"
#include "ingot/base/value.h"
#include "ingot/text/jinja_text.h"

namespace ingot {
namespace {

bool is_learnt(const Message& message, const MaskOptions& options) {
  const bool by_role = std::find(options.roles.begin(), options.roles.end(), role_of(message)) !=
                       options.roles.end();
  return message.train.value_or(by_role);
}

// The last bytes of a text, in quotes, for messages.
std::string end_of(std::string_view text) {
  constexpr size_t most = 40;
  size_t start = text.size() > most ? text.size() - most : 0;
  while (start < text.size() && (static_cast<uint8_t>(text[start]) & 0xc0) == 0x80) {
    ++start;
  }
  return (start > 0 ? "…" : "") + in_quotes(text.substr(start));
}

std::string start_of(std::string_view text) {
  constexpr size_t most = 40;
  size_t end = std::min(most, text.size());
  while (end < text.size() && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) {
    ++end;
  }
  return in_quotes(text.substr(0, end)) + (end < text.size() ? "…" : "");
}

// The content of a message, of a list of parts the last text, without white space around it, which
// templates strip.
std::string_view last_text(const Message& message) {
  const jinja::Value* content = message.fields.find("content");
  if (content != nullptr && content->list() != nullptr && !content->list()->empty()) {
    const jinja::Mapping* part = content->list()->back().mapping();
    content = part == nullptr ? nullptr : part->find("text");
  }
  return content == nullptr || content->text() == nullptr ? std::string_view()
                                                          : jinja::stripped(*content->text());
}

// A turn as it is rendered last in the conversation: the text, and what of it is learnt.
struct Turn {
  size_t index = 0;
  std::string after;
  Span learnt;
};

class Renderer {
 public:
  Renderer(const ChatTemplate& chat, const Conversation& conversation, const MaskOptions& options)
      : chat_(chat), conversation_(conversation), options_(options), stops_(options.stops) {
    if (!options_.apply.render.clock) {  // one time for all renderings
      const std::time_t now = std::time(nullptr);
      std::tm time{};
      localtime_r(&now, &time);
      options_.apply.render.clock = [time] { return time; };
    }
    if (stops_.empty()) {
      stops_ = chat.stops();
    }
  }

  Turn turn(size_t index) {
    const Message& message = conversation_.messages[index];
    const std::string place = concat("messages[", index, "] (", role_of(message), ")");
    const bool prompted = role_of(message) == "assistant";
    Turn out;
    out.index = index;
    std::string before;
    try {
      before = index == 0 && !prompted ? "" : render(index, prompted);
      out.after = render(index + 1, false);
    } catch (Error& error) {
      throw error.within(concat("while rendering the beginning of the conversation up to ", place,
                                "; give it \"train\": false to leave it out"));
    }
    if (!out.after.starts_with(before)) {
      const auto differ =
          std::mismatch(before.begin(), before.end(), out.after.begin(), out.after.end());
      const auto at = static_cast<size_t>(differ.first - before.begin());
      throw Error(
          ErrorKind::format,
          concat(place, ": the rendered turn does not continue the generation prompt: after ",
                 end_of(std::string_view(before).substr(0, at)), " the prompt has ",
                 start_of(std::string_view(before).substr(at)), ", the turn ",
                 start_of(std::string_view(out.after).substr(at)),
                 "; training on it would not match inference: give it \"train\": false, or "
                 "change the template or its variables"));
    }
    out.learnt = {before.size(), end_in(message, out.after, before.size())};
    return out;
  }

 private:
  std::string render(size_t count, bool prompt) {
    options_.apply.add_generation_prompt = prompt;
    return chat_.apply(std::span(conversation_.messages).first(count), conversation_.tools,
                       options_.apply);
  }

  // Behind the first stop text behind the content, or the end of the text. A short content may
  // stand within the stop text too, so its places are tried from the last one on.
  size_t end_in(const Message& message, std::string_view text, size_t begin) const {
    const std::string_view content = last_text(message);
    size_t place = content.empty() ? std::string_view::npos : text.rfind(content);
    while (place != std::string_view::npos && place >= begin) {
      const size_t end = stop_after(text, place + content.size());
      if (end != std::string_view::npos) {
        return end;
      }
      place = place == 0 ? std::string_view::npos : text.rfind(content, place - 1);
    }
    const bool there = !content.empty() && text.find(content, begin) != std::string_view::npos;
    return there ? text.size() : std::min(text.size(), stop_after(text, begin));
  }

  // Behind the first stop text from a place on; npos where there is none.
  size_t stop_after(std::string_view text, size_t from) const {
    size_t end = std::string_view::npos;
    for (const std::string& stop : stops_) {
      const size_t at = stop.empty() ? std::string_view::npos : text.find(stop, from);
      end = at == std::string_view::npos ? end : std::min(end, at + stop.size());
    }
    return end;
  }

  const ChatTemplate& chat_;
  const Conversation& conversation_;
  MaskOptions options_;
  std::vector<std::string> stops_;
};

void check_any(const std::vector<Turn>& turns, const Conversation& conversation,
               const MaskOptions& options) {
  const bool any = std::any_of(turns.begin(), turns.end(), [](const Turn& turn) {
    return turn.learnt.end > turn.learnt.begin;
  });
  if (any) {
    return;
  }
  std::string roles;
  for (const std::string& role : options.roles) {
    roles += (roles.empty() ? "" : ", ") + role;
  }
  std::string present;
  for (const Message& message : conversation.messages) {
    present += (present.empty() ? "" : ", ") + std::string(role_of(message));
  }
  throw Error(ErrorKind::format,
              concat("conversation: nothing of it is learnt: the learnt roles are ",
                     roles.empty() ? "none" : roles, ", its roles are ", present,
                     "; add an answer, or learn other roles"));
}

}  // namespace

std::vector<TrainingText> training_texts(const ChatTemplate& chat, const Conversation& conversation,
                                         const MaskOptions& options) {
  Renderer renderer(chat, conversation, options);
  std::vector<Turn> open;
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    if (is_learnt(conversation.messages[i], options)) {
      open.push_back(renderer.turn(i));
    }
  }
  check_any(open, conversation, options);
  std::erase_if(open, [](const Turn& turn) { return turn.learnt.end <= turn.learnt.begin; });
  std::vector<TrainingText> out;
  while (!open.empty()) {
    const Turn last = std::move(open.back());
    open.pop_back();
    TrainingText row{last.after, {}, {}};
    std::vector<Turn> left;
    for (Turn& turn : open) {
      const std::string_view seen = std::string_view(turn.after).substr(0, turn.learnt.end);
      const bool apart = turn.learnt.end <= last.learnt.begin &&
                         (row.learnt.empty() || row.learnt.back().end <= turn.learnt.begin);
      if (apart && row.text.starts_with(seen)) {
        row.learnt.push_back(turn.learnt);
        row.turns.push_back(turn.index);
      } else {
        check(options.rewrites == Rewrites::split, ErrorKind::format, "messages[", turn.index,
              "]: the template rewrites this turn when others follow, so one text cannot train it "
              "as it is seen at inference; allow several texts a conversation, or give it "
              "\"train\": false");
        left.push_back(std::move(turn));
      }
    }
    row.learnt.push_back(last.learnt);
    row.turns.push_back(last.index);
    out.push_back(std::move(row));
    open = std::move(left);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

TokenMask token_mask(const TrainingText& text, std::span<const int64_t> bytes) {
  TokenMask out;
  size_t at = 0;
  size_t span = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    check(bytes[i] >= 0 && static_cast<size_t>(bytes[i]) <= text.text.size() - at,
          ErrorKind::argument, "token_mask: token ", i, " of ", bytes[i], " bytes stands at byte ",
          at, " of a text of ", text.text.size(), "; give the lengths of this text's tokens");
    const size_t end = at + static_cast<size_t>(bytes[i]);
    while (span < text.learnt.size() && text.learnt[span].end <= at) {
      ++span;
    }
    const Span now =
        span < text.learnt.size() ? text.learnt[span] : Span{text.text.size(), text.text.size()};
    const bool begins_within = bytes[i] > 0 && at >= now.begin && at < now.end;
    out.learnt.push_back(begins_within ? 1 : 0);
    if (!begins_within && bytes[i] > 0 && at < now.begin && end > now.begin) {
      out.straddling.push_back(i);
    }
    at = end;
  }
  check(at == text.text.size(), ErrorKind::argument, "token_mask: the tokens have ", at,
        " bytes, the text ", text.text.size(), "; give the lengths of all its tokens");
  return out;
}

std::string shown(const TrainingText& text, Colours colours) {
  const bool terminal = colours == Colours::terminal;
  std::string out;
  size_t at = 0;
  for (const Span& span : text.learnt) {
    out += text.text.substr(at, span.begin - at);
    out += terminal ? "\x1b[32m" : "«";
    out += text.text.substr(span.begin, span.end - span.begin);
    out += terminal ? "\x1b[0m" : "»";
    at = span.end;
  }
  return out + text.text.substr(at);
}

}  // namespace ingot
