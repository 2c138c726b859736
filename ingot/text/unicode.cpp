#include "ingot/text/unicode.h"

#include <unicode/brkiter.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uscript.h>
#include <unicode/utext.h>

#include <memory>

#include "ingot/base/error.h"

namespace ingot {
namespace {

constexpr char32_t codes = 0x110000;

UChar32 icu(char32_t c) { return static_cast<UChar32>(c); }
bool in_mask(char32_t c, uint32_t mask) { return (U_GET_GC_MASK(icu(c)) & mask) != 0; }

void check_icu(UErrorCode status, const char* what) {
  check(U_SUCCESS(status), ErrorKind::internal, "unicode: ICU failed: ", what, ": ",
        u_errorName(status));
}

const icu::Normalizer2& normalizer(NormalForm form) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* found = nullptr;
  switch (form) {
    case NormalForm::nfc: found = icu::Normalizer2::getNFCInstance(status); break;
    case NormalForm::nfd: found = icu::Normalizer2::getNFDInstance(status); break;
    case NormalForm::nfkc: found = icu::Normalizer2::getNFKCInstance(status); break;
    case NormalForm::nfkd: found = icu::Normalizer2::getNFKDInstance(status); break;
  }
  check_icu(status, "normalization data");
  return *found;
}

icu::StringPiece piece(std::string_view text) {
  check(text.size() < size_t{1} << 31, ErrorKind::argument,
        "unicode: a text to normalize has more than 2 GiB: ", text.size(),
        " bytes; split it, for instance into lines");
  return {text.data(), static_cast<int32_t>(text.size())};
}

uint8_t class_of(UCharCategory category) {
  const uint32_t mask = U_MASK(category);
  constexpr uint32_t both = U_GC_LM_MASK | U_GC_LO_MASK | U_GC_M_MASK;
  int flags = 0;
  flags |= (mask & U_GC_L_MASK) != 0 ? CharClass::letter : 0;
  flags |= (mask & U_GC_N_MASK) != 0 ? CharClass::number : 0;
  flags |= (mask & (U_GC_LU_MASK | U_GC_LT_MASK | both)) != 0 ? CharClass::upper : 0;
  flags |= (mask & (U_GC_LL_MASK | both)) != 0 ? CharClass::lower : 0;
  return static_cast<uint8_t>(flags);
}

CharClassTable made_classes() {
  CharClassTable table(codes, 0);
  u_enumCharTypes(
      [](const void* context, UChar32 first, UChar32 end, UCharCategory category) -> UBool {
        auto& out = *static_cast<CharClassTable*>(const_cast<void*>(context));
        std::fill(out.begin() + first, out.begin() + end, class_of(category));
        return true;
      },
      &table);
  for (char32_t c = 0; c <= 0x3000; ++c) {  // the last White_Space character
    table[c] = static_cast<uint8_t>(table[c] | (is_space(c) ? CharClass::space : 0));
  }
  table['\r'] |= CharClass::newline;
  table['\n'] |= CharClass::newline;
  return table;
}

}  // namespace

bool is_space(char32_t c) { return u_isUWhiteSpace(icu(c)); }

bool is_word(char32_t c) {
  return u_isUAlphabetic(icu(c)) || in_mask(c, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK) ||
         c == 0x200C || c == 0x200D;
}

bool is_mark(char32_t c) { return in_mask(c, U_GC_M_MASK); }
bool is_nonspacing(char32_t c) { return in_mask(c, U_GC_MN_MASK); }
bool is_numeric(char32_t c) { return in_mask(c, U_GC_N_MASK); }
bool is_other(char32_t c) { return in_mask(c, U_GC_C_MASK); }
bool is_control_or_format(char32_t c) { return in_mask(c, U_GC_C_MASK & ~U_GC_CN_MASK); }

bool is_punctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  }
  return in_mask(c, U_GC_P_MASK);
}

bool is_cjk(char32_t c) {
  constexpr char32_t ranges[][2] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF},
                                    {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF},
                                    {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  for (const auto& [low, high] : ranges) {
    if (c >= low && c <= high) {
      return true;
    }
  }
  return false;
}

void append_lower(std::string& text, char32_t c) {
  if (c == 0x130) {  // the one character with a longer mapping that holds everywhere
    text += "i\xCC\x87";
    return;
  }
  const auto lower = static_cast<char32_t>(u_tolower(icu(c)));
  char buffer[4];
  int32_t length = 0;
  U8_APPEND_UNSAFE(buffer, length, lower);
  text.append(buffer, static_cast<size_t>(length));
}

std::string normalized(std::string_view text, NormalForm form) {
  UErrorCode status = U_ZERO_ERROR;
  std::string out;
  icu::StringByteSink<std::string> sink(&out, static_cast<int32_t>(piece(text).length()));
  normalizer(form).normalizeUTF8(0, piece(text), sink, nullptr, status);
  check_icu(status, "normalization");
  return out;
}

bool is_normalized(std::string_view text, NormalForm form) {
  UErrorCode status = U_ZERO_ERROR;
  const bool same = normalizer(form).isNormalizedUTF8(piece(text), status);
  check_icu(status, "normalization check");
  return same;
}

std::vector<size_t> grapheme_ends(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  check_icu(status, "grapheme breaks");
  UText* opened = utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &status);
  const std::unique_ptr<UText, UText* (*)(UText*)> owned(opened, utext_close);
  breaks->setText(opened, status);
  check_icu(status, "grapheme breaks");
  std::vector<size_t> ends;
  for (int32_t at = breaks->next(); at != icu::BreakIterator::DONE; at = breaks->next()) {
    ends.push_back(static_cast<size_t>(at));
  }
  return ends;
}

int32_t script_of(char32_t c) {
  UErrorCode status = U_ZERO_ERROR;
  return uscript_getScript(icu(c), &status);
}

int32_t han_script() { return USCRIPT_HAN; }

bool is_kana(char32_t c) {
  const int32_t script = script_of(c);
  return script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA;
}

const CharClassTable& char_classes() {
  static const CharClassTable table = made_classes();
  return table;
}

}  // namespace ingot
