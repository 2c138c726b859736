#include "ingot/eval/eval_model.h"

namespace ingot {

EvalModel::Question question_of(const EvalModel& model, std::string context,
                                std::string continuation, bool special) {
  constexpr std::string_view blanks = " \t\n\r\v\f";
  const size_t end = context.find_last_not_of(blanks);
  const size_t kept = end == std::string::npos ? 0 : end + 1;
  continuation.insert(0, context.substr(kept));
  context.resize(kept);
  EvalModel::Question out;
  out.context = model.encode(context, true, special);
  const EvalModel::Ids whole = model.encode(context + continuation, true, special);
  const size_t known = std::min(out.context.size(), whole.size());
  out.continuation.assign(whole.begin() + static_cast<std::ptrdiff_t>(known), whole.end());
  if (out.context.empty()) {
    out.context = {model.empty_context};
  }
  return out;
}

}  // namespace ingot
