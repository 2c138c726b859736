#include "ingot/cli/answer_kinds.h"

#include "ingot/autograd/grad_mode.h"
#include "ingot/cli/on_policy.h"
#include "ingot/cli/session.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

// Without dropout, whatever the trainer has said: a reference is not trained.
class Quiet {
 public:
  explicit Quiet(Randomness& randomness)
      : randomness_(randomness), before_(std::exchange(randomness.training, false)) {}
  ~Quiet() { randomness_.training = before_; }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  Randomness& randomness_;
  bool before_;
};

Policy policy_of_model(Decoder& model) {
  return {[&model](const Batch& batch) { return model.hidden(batch.ids, info_of(batch)); },
          [&model] { return model.output_weight(); }, model.config().logit_softcap};
}

// f(the teacher's policy): that of a model of its own, or of the session's without its adapters.
template <class F>
auto with_teacher(Session& session, const F& f) {
  if (Decoder* own = session.teacher(); own != nullptr) {
    return f(policy_of_model(*own));
  }
  const Quiet quiet(*session.model().randomness());
  const peft::AdaptersOff off(session.adapters());
  return f(policy_of_model(session.model()));
}

Teacher teacher_of(Session& session) {
  if (session.teacher_cache() == nullptr) {
    return [&session](const Batch& batch) {
      return with_teacher(session, [&](const Policy& p) { return model_teacher(p)(batch); });
    };
  }
  return cached_teacher(*session.teacher_cache(), [&session](const Batch& batch) {
    const DistillRun& config = session.recipe().distill;
    return with_teacher(session, [&](const Policy& p) {
      return top_logprobs_of(p, batch, config.top_k, config.temperature);
    });
  });
}

}  // namespace

Policy policy_of(Session& session) { return policy_of_model(session.model()); }

Reference reference_of(Session& session) {
  return [&session](const Batch& batch) {
    const NoGrad no_grad;
    const bool meta = batch.ids.device().kind == DeviceKind::meta;
    if (session.adapters() == nullptr && !meta && session.reference().size() > 0) {
      return session.reference()(batch);
    }
    check(session.adapters() != nullptr || meta || session.state.step == 0, ErrorKind::internal,
          "reference: the weights that training began with are gone");
    const Quiet quiet(*session.model().randomness());
    const peft::AdaptersOff off(session.adapters());
    return logprobs_of(policy_of(session), batch);
  };
}

Objective dpo_of(Session& session) {
  return dpo_objective(policy_of(session), reference_of(session), session.recipe().dpo);
}

Objective orpo_of(Session& session) {
  return orpo_objective(policy_of(session), session.recipe().orpo);
}

Objective simpo_of(Session& session) {
  return simpo_objective(policy_of(session), session.recipe().simpo);
}

Objective cpo_of(Session& session) {
  return cpo_objective(policy_of(session), session.recipe().cpo);
}

Objective kto_of(Session& session) {
  return kto_objective(policy_of(session), reference_of(session), session.recipe().kto);
}

Objective reward_of(Session& session) {
  return reward_objective(
      policy_of(session).hidden, [&session] { return session.score_head()->weight; },
      session.recipe().reward);
}

Objective distillation_of(Session& session) {
  const DistillRun& config = session.recipe().distill;
  Objective inner = distillation_objective(policy_of(session), teacher_of(session), config);
  return [&session, inner = std::move(inner), config](const Batch& given) {
    Batch batch = given;
    if (config.on_policy > 0) {
      batch = on_policy_batch(session.model(), batch, config, session.reads.stops);
    }
    add_context(batch, session.reads.context);
    return inner(batch);
  };
}

}  // namespace ingot
