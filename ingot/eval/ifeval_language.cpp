#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

#include "ingot/eval/ifeval.h"
#include "ingot/text/jinja_text.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

// Words after which a stop ends no sentence.
const std::set<std::string_view>& abbreviations() {
  static const std::set<std::string_view> words = {
      "mr",  "mrs", "ms", "dr", "prof", "st", "jr",     "sr",   "vs",  "etc", "e.g", "i.e",
      "inc", "ltd", "co", "no", "fig",  "al", "approx", "dept", "gen", "rev", "u.s"};
  return words;
}

bool is_closing(char letter) {
  return letter == '"' || letter == '\'' || letter == ')' || letter == ']' || letter == '*';
}

std::string_view word_before(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && text[begin - 1] != ' ' && text[begin - 1] != '\n' && text[begin - 1] != '(' &&
         text[begin - 1] != '"') {
    --begin;
  }
  return text.substr(begin, end - begin);
}

struct Script {
  char32_t first, last;
  const char* language;
};

// Scripts that are used for one language of the data set.
constexpr std::array<Script, 16> scripts = {{
    {0x0400, 0x04FF, "ru"},
    {0x0590, 0x05FF, "he"},
    {0x0600, 0x06FF, "ar"},
    {0x0900, 0x097F, "hi"},
    {0x0980, 0x09FF, "bn"},
    {0x0A00, 0x0A7F, "pa"},
    {0x0A80, 0x0AFF, "gu"},
    {0x0B80, 0x0BFF, "ta"},
    {0x0C00, 0x0C7F, "te"},
    {0x0C80, 0x0CFF, "kn"},
    {0x0D00, 0x0D7F, "ml"},
    {0x0E00, 0x0E7F, "th"},
    {0x0370, 0x03FF, "el"},
    {0x3040, 0x30FF, "ja"},
    {0xAC00, 0xD7AF, "ko"},
    {0x4E00, 0x9FFF, "zh-cn"},
}};

// Frequent words of languages in Latin letters, and of others that share a script.
const std::map<std::string_view, std::set<std::string_view>>& frequent_words() {
  static const std::map<std::string_view, std::set<std::string_view>> table = {
      {"en",
       {"the", "and", "of", "to", "is", "in", "you", "that", "it", "for", "with", "are", "this"}},
      {"de",
       {"der", "die", "und", "das", "ist", "nicht", "ein", "eine", "zu", "den", "mit", "ich",
        "sie"}},
      {"fr",
       {"le", "la", "les", "et", "des", "est", "une", "un", "dans", "que", "pour", "je", "vous"}},
      {"es",
       {"el", "los", "las", "y", "de", "es", "que", "una", "en", "por", "para", "con", "del"}},
      {"pt", {"o", "os", "e", "de", "que", "um", "uma", "não", "para", "com", "do", "da", "em"}},
      {"it",
       {"il", "di", "che", "è", "e", "un", "una", "per", "non", "con", "della", "sono", "gli"}},
      {"nl",
       {"de", "het", "een", "en", "van", "is", "niet", "dat", "op", "te", "zijn", "voor", "met"}},
      {"fi",
       {"ja", "on", "ei", "että", "se", "oli", "mutta", "kun", "hän", "ovat", "tai", "kuin",
        "myös"}},
      {"sw",
       {"na", "ya", "wa", "kwa", "ni", "za", "katika", "la", "cha", "kuwa", "hii", "yake", "kama"}},
      {"vi",
       {"là", "và", "của", "có", "không", "được", "cho", "một", "các", "tôi", "bạn", "trong",
        "này"}},
      {"tr",
       {"ve", "bir", "bu", "için", "ile", "çok", "daha", "olarak", "gibi", "ne", "en", "olan",
        "var"}},
      {"pl", {"i", "w", "nie", "na", "się", "jest", "to", "z", "że", "do", "dla", "są", "jak"}},
      {"sv",
       {"och", "att", "det", "som", "är", "på", "en", "för", "inte", "av", "med", "jag", "till"}},
      {"mr", {"आहे", "आणि", "मी", "तो", "होते", "आहेत", "साठी", "या", "एक", "नाही"}},
      {"ne", {"छ", "र", "को", "हो", "मा", "भने", "गर्न", "छन्", "पनि", "लागि"}},
      {"hi", {"है", "और", "के", "में", "की", "का", "हैं", "से", "यह", "नहीं"}},
      {"bg", {"и", "на", "да", "се", "за", "от", "не", "това", "са", "като"}},
      {"uk", {"і", "та", "що", "не", "на", "для", "це", "є", "як", "від"}},
      {"ru", {"и", "в", "не", "на", "что", "я", "с", "как", "это", "для"}},
      {"fa", {"و", "در", "به", "از", "که", "این", "است", "را", "با", "برای"}},
      {"ur", {"اور", "کے", "میں", "کی", "ہے", "کا", "سے", "کو", "پر", "ہیں"}},
      {"ar", {"في", "من", "على", "أن", "إلى", "هذا", "التي", "مع", "كان", "هو"}},
  };
  return table;
}

std::string by_script(std::string_view text) {
  std::map<std::string, int64_t> counts;
  int64_t latin = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char one = utf8_char(text.data() + at);
    at += one.bytes;
    for (const Script& script : scripts) {
      counts[script.language] += one.code >= script.first && one.code <= script.last ? 1 : 0;
    }
    latin += (one.code >= 'a' && one.code <= 'z') || (one.code >= 'A' && one.code <= 'Z') ||
                     (one.code >= 0xC0 && one.code <= 0x24F) ||
                     (one.code >= 0x1EA0 && one.code <= 0x1EFF)
                 ? 1
                 : 0;
  }
  if (counts["ja"] > 0 && counts["zh-cn"] > 0 && counts["ja"] * 10 > counts["zh-cn"]) {
    return "ja";
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most->second > latin ? most->first : latin > 0 ? "latin" : "";
}

}  // namespace

int64_t sentence_count(std::string_view text) {
  int64_t count = 0;
  bool open = false;  // a word was seen since the last end
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    const bool stop = letter == '.' || letter == '!' || letter == '?';
    if (!stop) {
      open = open || static_cast<unsigned char>(letter) >= 0x80 ||
             std::isalnum(static_cast<unsigned char>(letter)) != 0;
      continue;
    }
    size_t end = i + 1;
    while (end < text.size() &&
           (is_closing(text[end]) || text[end] == '.' || text[end] == '!' || text[end] == '?')) {
      ++end;
    }
    const bool at_end =
        end >= text.size() || text[end] == ' ' || text[end] == '\n' || text[end] == '\t';
    const std::string_view word = word_before(text, i);
    const bool initial =
        letter == '.' && word.size() == 1 && std::isupper(static_cast<unsigned char>(word[0])) != 0;
    const bool number = letter == '.' && !word.empty() &&
                        std::all_of(word.begin(), word.end(),
                                    [](unsigned char c) { return std::isdigit(c) != 0; }) &&
                        end < text.size() && text[end] == ' ' &&
                        (i == word.size() || text[i - word.size() - 1] == '\n');
    const size_t next = text.find_first_not_of(" \n\t\"'(*", end);
    const bool small = letter == '.' && next != std::string_view::npos &&
                       std::islower(static_cast<unsigned char>(text[next])) != 0;
    if (at_end && open && !initial && !number && !small &&
        !(letter == '.' && abbreviations().contains(jinja::lower(word)))) {
      ++count;
      open = false;
    }
    i = end - 1;
  }
  return count + (open ? 1 : 0);
}

std::string language_of(std::string_view text) {
  const std::string script = by_script(text);
  const std::string lower = jinja::lower(text);
  std::map<std::string_view, int64_t> counts;
  for (std::string_view word : jinja::split(lower, std::nullopt, -1)) {
    word = jinja::stripped(word, jinja::Side::both, ".,;:!?\"'()[]*।،");
    for (const auto& [language, words] : frequent_words()) {
      counts[language] += words.contains(word) ? 1 : 0;
    }
  }
  const std::set<std::string_view> latin = {"en", "de", "fr", "es", "pt", "it", "nl",
                                            "fi", "sw", "vi", "tr", "pl", "sv"};
  const std::map<std::string_view, std::set<std::string_view>> shared = {
      {"hi", {"hi", "mr", "ne"}}, {"ru", {"ru", "bg", "uk"}}, {"ar", {"ar", "fa", "ur"}}};
  const std::set<std::string_view>* among = nullptr;
  if (script == "latin") {
    among = &latin;
  } else if (const auto found = shared.find(script); found != shared.end()) {
    among = &found->second;
  }
  if (among == nullptr) {
    return script;
  }
  std::string_view best;
  int64_t most = 0;
  for (const std::string_view language : *among) {
    if (counts[language] > most || (counts[language] == most && most > 0 && language == "en")) {
      best = language;
      most = counts[language];
    }
  }
  return most > 0 ? std::string(best) : script == "latin" ? "" : script;
}

}  // namespace ingot
