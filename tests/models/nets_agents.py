"""Reinforcement learning: DQN with a target copy, policy gradient, PPO, and DDPG with two optimizers."""
from harness import drawn, net

OBS, ACTIONS, BATCH = 4, 3, 6


def observed(key, step, actions=ACTIONS):
    r = drawn(key, step)
    return r, {"obs": r.uniform(-1, 1, (BATCH, OBS)).astype("float32"),
               "next_obs": r.uniform(-1, 1, (BATCH, OBS)).astype("float32"),
               "act": r.randint(0, actions, (BATCH, 1)).astype("int64"),
               "reward": r.uniform(-1, 1, BATCH).astype("float32"), "terminal": r.uniform(size=BATCH) < 0.3}


def copied(fluid, main, source, target, decay):
    """A program that moves the parameters of one model towards those of another, as sync_weights_to does."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        for name in sorted(p.name for p in main.global_block().all_parameters() if p.name.startswith(source)):
            shape = main.global_block().var(name).shape
            ours, theirs = [program.global_block().create_parameter(shape=shape, dtype="float32", name=n) for n in (
                name, target + name[len(source):])]
            if decay:
                fluid.layers.assign(decay * theirs + (1 - decay) * ours, theirs)
            else:
                fluid.layers.assign(ours, theirs)
    return program


@net("dqn")
def dqn(fluid):
    """Double and dueling: the online net chooses the action, its copy values it; epsilon decays by a counter."""
    L = fluid.layers

    def dueling(obs, scope):
        hidden = L.fc(obs, size=8, act="relu", param_attr=fluid.ParamAttr(name=scope + "fc1_w"),
                      bias_attr=fluid.ParamAttr(name=scope + "fc1_b"))
        value = L.fc(hidden, size=1, param_attr=scope + "value_w", bias_attr=scope + "value_b")
        advantage = L.fc(hidden, size=ACTIONS, param_attr=scope + "adv_w", bias_attr=scope + "adv_b")
        return advantage + (value - L.reduce_mean(advantage, dim=1, keep_dim=True))

    obs, next_obs = [L.data(n, shape=[OBS], dtype="float32") for n in ("obs", "next_obs")]
    action = L.data("act", shape=[1], dtype="int32")
    reward = L.data("reward", shape=[], dtype="float32")
    terminal = L.data("terminal", shape=[], dtype="bool")
    predict_program = fluid.default_main_program().clone()
    pred_value = dueling(obs, "policy_")
    greedy = L.argmax(dueling(next_obs, "policy_"), axis=1)
    one_hot = L.one_hot(L.unsqueeze(greedy, axes=[1]), ACTIONS)
    best = L.reduce_sum(L.elementwise_mul(dueling(next_obs, "target_"), one_hot), dim=1)
    best.stop_gradient = True
    target = reward + (1.0 - L.cast(terminal, dtype="float32")) * 0.99 * best
    pred = L.reduce_sum(L.elementwise_mul(L.one_hot(L.cast(action, "int64"), ACTIONS), pred_value), dim=1)
    cost = L.reduce_mean(L.square_error_cost(pred, target))
    main = fluid.default_main_program()
    policy = [p.name for p in main.global_block().all_parameters() if p.name.startswith("policy_")]
    fluid.optimizer.Adam(learning_rate=0.05, epsilon=1e-3).minimize(cost, parameter_list=policy)
    with fluid.program_guard(predict_program, fluid.Program()):
        state = predict_program.global_block().var("obs")
        values = dueling(state, "policy_")
        chosen = L.squeeze(L.argmax(values, axis=1), axes=[])

    def feed(step):
        _, made = observed("dqn", step)
        made["act"] = made["act"].astype("int32")
        return made
    return {"feed": feed, "runs": [
        dict(program=predict_program, feed=["obs"], fetch=[values, chosen]),
        dict(program=main, feed=["obs", "next_obs", "act", "reward", "terminal"], fetch=[cost, pred, target]),
        dict(program=copied(fluid, main, "policy_", "target_", 0.9), feed=[], fetch=[])]}


@net("policy_gradient")
def policy_gradient(fluid):
    """Episodes as sequences: returns over each episode, the log likelihood of actions, an entropy bonus."""
    L = fluid.layers
    obs = fluid.data("obs", [None, OBS], "float32", lod_level=1)
    act = fluid.data("act", [None, 1], "int64", lod_level=1)
    reward = fluid.data("reward", [None, 1], "float32", lod_level=1)
    hidden = L.fc(obs, 8, act="tanh", name="hidden")
    probs = L.fc(hidden, ACTIONS, act="softmax", name="policy")
    sampled = fluid.default_main_program().clone(for_test=True)
    gains = L.DynamicRNN()
    backward = L.sequence_reverse(reward)
    with gains.block():
        r = gains.step_input(backward)
        before = gains.memory(shape=[1], value=0.0)
        now = L.elementwise_add(r, L.scale(before, scale=0.9))
        gains.update_memory(before, now)
        gains.output(now)
    returns = L.sequence_reverse(gains())
    mean = L.sequence_pool(returns, "average")
    centred = L.elementwise_sub(returns, L.sequence_expand_as(mean, returns))
    centred.stop_gradient = True
    log_prob = -1.0 * L.cross_entropy(probs, act)
    entropy = -1.0 * L.reduce_sum(probs * L.log(probs), dim=1, keep_dim=True)
    cost = L.reduce_mean(L.sequence_pool(-1.0 * log_prob * centred - 0.01 * entropy, "sum"))
    fluid.optimizer.RMSProp(0.01, rho=0.95, epsilon=1e-2, momentum=0.9, centered=True).minimize(cost)

    def feed(step):
        r, sizes = drawn("policy", step), [[3, 5], [2, 1], [4, 4]][step]
        rows = sum(sizes)
        return {"obs": (r.uniform(-1, 1, (rows, OBS)).astype("float32"), [sizes]),
                "act": (r.randint(0, ACTIONS, (rows, 1)).astype("int64"), [sizes]),
                "reward": (r.uniform(0, 1, (rows, 1)).astype("float32"), [sizes])}
    return {"feed": feed, "fetch": [cost, returns, entropy, probs], "test": sampled, "test_fetch": [probs]}


@net("ppo")
def ppo(fluid):
    """Clipped ratios against a frozen copy, a Gaussian policy with a learned deviation, a clipped value loss."""
    L = fluid.layers
    obs = fluid.data("obs", [None, OBS], "float32")
    actions = fluid.data("actions", [None, 2], "float32")
    advantage, returns = [fluid.data(n, [None], "float32") for n in ("advantage", "returns")]

    def policy(scope):
        hidden = L.fc(obs, 8, act="tanh", param_attr=scope + "w0", bias_attr=scope + "b0")
        means = L.fc(hidden, 2, param_attr=scope + "w1", bias_attr=scope + "b1")
        logvars = L.create_parameter(shape=[2], dtype="float32", default_initializer=fluid.initializer.Constant(-0.5),
                                     name=scope + "logvars")
        return L.Normal(means, L.exp(L.elementwise_mul(L.expand_as(L.unsqueeze(logvars, [0]), means),
                                                       L.fill_constant([1], "float32", 0.5))))

    new, old = policy("pi_"), policy("old_")
    log_new, log_old = [L.reduce_sum(p.log_prob(actions), dim=1) for p in (new, old)]
    log_old.stop_gradient = True
    ratio = L.exp(log_new - log_old)
    surrogate = L.elementwise_min(ratio * advantage, L.clip(ratio, min=0.8, max=1.2) * advantage)
    kl = L.reduce_mean(L.reduce_sum(old.kl_divergence(new), dim=1))
    value = L.squeeze(L.fc(L.fc(obs, 8, act="relu", name="vf_0"), 1, name="vf_1"), axes=[1])
    value_loss = 0.5 * L.reduce_mean(L.square(value - returns))
    loss = value_loss - L.reduce_mean(surrogate) - 0.01 * L.reduce_mean(new.entropy()) + 0.1 * kl
    main = fluid.default_main_program()
    names = [p.name for p in main.global_block().all_parameters() if not p.name.startswith("old_")]
    clip = fluid.clip.GradientClipByGlobalNorm(0.5)
    fluid.optimizer.Adam(L.linear_lr_warmup(0.02, 2, 0.0, 0.02), epsilon=1e-3, grad_clip=clip).minimize(
        loss, parameter_list=names)

    def feed(step):
        r, made = observed("ppo", step)
        return {"obs": made["obs"], "actions": r.uniform(-1, 1, (BATCH, 2)).astype("float32"),
                "advantage": r.uniform(-1, 1, BATCH).astype("float32"), "returns": made["reward"]}
    return {"feed": feed, "runs": [
        dict(program=main, fetch=[loss, ratio, kl, value_loss]),
        dict(program=copied(fluid, main, "pi_", "old_", 0.0), feed=[], fetch=[])]}


@net("ddpg")
def ddpg(fluid):
    """An actor that climbs the critic's value, a critic that fits it, programs and optimizers apart, soft copies."""
    L = fluid.layers
    learn_actor, learn_critic = fluid.default_main_program(), fluid.Program()
    startup = fluid.default_startup_program()

    def actor(obs, scope):
        hidden = L.fc(obs, 8, act="relu", param_attr=scope + "actor_w0", bias_attr=scope + "actor_b0")
        return L.fc(hidden, 2, act="tanh", param_attr=scope + "actor_w1", bias_attr=scope + "actor_b1")

    def critic(obs, act, scope):
        hidden = L.fc(L.concat([obs, act], axis=1), 8, act="relu", param_attr=scope + "critic_w0",
                      bias_attr=scope + "critic_b0")
        return L.squeeze(L.fc(hidden, 1, param_attr=scope + "critic_w1", bias_attr=scope + "critic_b1"), axes=[1])

    obs = L.data("obs", [OBS])
    climb = L.reduce_mean(-1.0 * critic(obs, actor(obs, "now_"), "now_"))
    actors = [n for n in (p.name for p in learn_actor.all_parameters()) if "actor" in n]
    fluid.optimizer.AdamOptimizer(0.01, epsilon=1e-3).minimize(climb, parameter_list=actors)
    with fluid.program_guard(learn_critic, startup):
        obs, next_obs = L.data("obs", [OBS]), L.data("next_obs", [OBS])
        act = L.data("act", [2], dtype="float32")
        reward, terminal = L.data("reward", [], dtype="float32"), L.data("terminal", [], dtype="bool")
        following = critic(next_obs, actor(next_obs, "then_"), "then_")
        following.stop_gradient = True
        target = reward + (1.0 - L.cast(terminal, "float32")) * 0.9 * following
        fit = L.reduce_mean(L.square_error_cost(critic(obs, act, "now_"), target))
        critics = [p.name for p in learn_critic.all_parameters() if p.name.startswith("now_critic")]
        fluid.optimizer.AdamOptimizer(0.02, epsilon=1e-3, regularization=fluid.regularizer.L2Decay(1e-3)).minimize(
            fit, startup_program=startup, parameter_list=critics)
    both = learn_critic.clone()

    def feed(step):
        r, made = observed("ddpg", step)
        made["act"] = r.uniform(-1, 1, (BATCH, 2)).astype("float32")
        return made
    with fluid.program_guard(both, fluid.Program()):
        actor(both.global_block().var("obs"), "now_")
    return {"feed": feed, "runs": [
        dict(program=learn_actor, feed=["obs"], fetch=[climb]),
        dict(program=learn_critic, feed=["obs", "next_obs", "act", "reward", "terminal"], fetch=[fit, target]),
        dict(program=copied(fluid, both, "now_", "then_", 0.7), feed=[], fetch=[])]}
