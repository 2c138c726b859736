#include "ingot/text/split.h"

#include <algorithm>

#include "ingot/base/error.h"
#include "ingot/text/unicode.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

struct Segment {
  size_t begin;
  size_t end;
  bool match;
};
using Segments = std::vector<Segment>;

Segments contiguous(const Segments& in) {
  Segments out;
  for (const Segment& segment : in) {
    if (!out.empty() && out.back().match == segment.match) {
      out.back().end = segment.end;
    } else {
      out.push_back(segment);
    }
  }
  return out;
}

// A match joins the segment before it, unless that is a match too.
Segments merged_with_previous(const Segments& in) {
  Segments out;
  bool after_match = false;
  for (const Segment& segment : in) {
    if (segment.match && !after_match && !out.empty()) {
      out.back().end = segment.end;
    } else {
      out.push_back(segment);
    }
    after_match = segment.match;
  }
  return out;
}

Segments merged_with_next(const Segments& in) {
  Segments out;
  bool before_match = false;
  for (auto at = in.rbegin(); at != in.rend(); ++at) {
    if (at->match && !before_match && !out.empty()) {
      out.back().begin = at->begin;
    } else {
      out.push_back(*at);
    }
    before_match = at->match;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

Segments behaved(Segments segments, SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::removed:
      std::erase_if(segments, [](const Segment& segment) { return segment.match; });
      return segments;
    case SplitBehavior::isolated: return segments;
    case SplitBehavior::merged_with_previous: return merged_with_previous(segments);
    case SplitBehavior::merged_with_next: return merged_with_next(segments);
    case SplitBehavior::contiguous: return contiguous(segments);
  }
  return segments;
}

// Cuts every word into the segments that `find` gives, which cover it.
template <class Find>
void split_by(Pieces& pieces, SplitBehavior behavior, const Find& find) {
  Pieces out;
  const bool removes = behavior == SplitBehavior::removed;
  size_t begin = 0;
  for (const size_t end : pieces.ends) {
    const std::string_view word = std::string_view(pieces.text).substr(begin, end - begin);
    for (const Segment& segment : behaved(find(word), behavior)) {
      if (segment.end == segment.begin) {
        continue;
      }
      if (removes) {
        out.text += word.substr(segment.begin, segment.end - segment.begin);
      }
      out.ends.push_back(removes ? out.text.size() : begin + segment.end);
    }
    begin = end;
  }
  if (removes) {
    pieces.text = std::move(out.text);
  }
  pieces.ends = std::move(out.ends);
}

}  // namespace

SplitBehavior split_behavior(const std::string& name, const std::string& subject) {
  if (name == "Removed") {
    return SplitBehavior::removed;
  }
  if (name == "Isolated") {
    return SplitBehavior::isolated;
  }
  if (name == "MergedWithPrevious") {
    return SplitBehavior::merged_with_previous;
  }
  if (name == "MergedWithNext") {
    return SplitBehavior::merged_with_next;
  }
  if (name == "Contiguous") {
    return SplitBehavior::contiguous;
  }
  throw Error(ErrorKind::format,
              concat(subject, ": unknown behavior '", name,
                     "'; known are Removed, Isolated, MergedWithPrevious, MergedWithNext, "
                     "Contiguous"));
}

void split(Pieces& pieces, const Regex& regex, SplitBehavior behavior, bool inverted) {
  split_by(pieces, behavior, [&](std::string_view word) {
    Segments segments;
    size_t done = 0;
    regex.for_each_match(word, [&](size_t begin, size_t end) {
      if (begin > done) {
        segments.push_back({done, begin, inverted});
      }
      segments.push_back({begin, end, !inverted});
      done = end;
    });
    if (done < word.size()) {
      segments.push_back({done, word.size(), inverted});
    }
    return segments;
  });
}

void split(Pieces& pieces, const std::function<bool(char32_t)>& is_match, SplitBehavior behavior) {
  split_by(pieces, behavior, [&](std::string_view word) {
    Segments segments;
    for (size_t at = 0; at < word.size();) {
      const Utf8Char c = utf8_char(word.data() + at);
      const bool match = is_match(c.code);
      if (!match && !segments.empty() && !segments.back().match) {
        segments.back().end = at + c.bytes;
      } else {
        segments.push_back({at, at + c.bytes, match});
      }
      at += c.bytes;
    }
    return segments;
  });
}

void split_words_and_signs(Pieces& pieces) {
  split_by(pieces, SplitBehavior::removed, [](std::string_view word) {
    enum Kind : uint8_t { space, letters, signs };
    Segments segments;
    Kind last = space;
    for (size_t at = 0; at < word.size();) {
      const Utf8Char c = utf8_char(word.data() + at);
      const Kind kind = is_word(c.code) ? letters : is_space(c.code) ? space : signs;
      if (!segments.empty() && kind == last) {
        segments.back().end = at + c.bytes;
      } else {
        segments.push_back({at, at + c.bytes, kind == space});
      }
      last = kind;
      at += c.bytes;
    }
    return segments;
  });
}

}  // namespace ingot
