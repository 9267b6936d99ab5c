"""Habits of old code: contrib's decoders, IfElse, Switch, py_func, and convolutions over audio and sentences."""
import numpy as np
from harness import drawn, net
from sequence_inputs import fed

VOCAB, D, H = 16, 5, 6


def encoded(fluid, src):
    L = fluid.layers
    emb = L.embedding(src, [VOCAB, D], is_sparse=True, param_attr="vemb")
    hidden, _ = L.dynamic_lstm(L.fc(emb, 4 * H, act="tanh", param_attr="enc_w", bias_attr="enc_b"), 4 * H,
                               param_attr="lstm_w", bias_attr="lstm_b")
    return L.sequence_last_step(hidden)


def state_cell(fluid, context):
    from importlib import import_module
    decoder = import_module(fluid.__name__ + ".contrib.decoder.beam_search_decoder")
    first = decoder.InitState(init=context, need_reorder=True)
    cell = decoder.StateCell(inputs={"x": None}, states={"h": first}, out_state="h")

    @cell.state_updater
    def updater(state_cell):
        x, h = state_cell.get_input("x"), state_cell.get_state("h")
        state_cell.set_state("h", fluid.layers.fc([h, x], size=H, act="tanh", param_attr=[
            fluid.ParamAttr(name="up_h"), fluid.ParamAttr(name="up_x")], bias_attr="up_b"))
    return decoder, cell


@net("contrib_decoder")
def contrib_decoder(fluid):
    """TrainingDecoder and BeamSearchDecoder of contrib share a StateCell's parameters by name."""
    L = fluid.layers
    src, trg, label = [L.data(n, shape=[1], dtype="int64", lod_level=1) for n in ("src", "trg", "label")]
    decoder, cell = state_cell(fluid, encoded(fluid, src))
    target = L.embedding(trg, [VOCAB, D], is_sparse=True, param_attr="vemb")
    training = decoder.TrainingDecoder(cell)
    with training.block():
        word = training.step_input(target)
        training.state_cell.compute_state(inputs={"x": word})
        state = training.state_cell.get_state("h")
        score = L.fc(state, VOCAB, act="softmax", param_attr="score_w", bias_attr="score_b")
        training.state_cell.update_states()
        training.output(score)
    loss = L.mean(L.cross_entropy(training(), label))
    fluid.optimizer.Adagrad(0.1).minimize(loss)
    feeder = fluid.DataFeeder([src, trg, label], fluid.CPUPlace())
    batches = []
    for step, sizes in enumerate(([(3, 2), (1, 4)], [(2, 3), (5, 1)], [(1, 1), (4, 2)])):
        r = drawn("contrib decoder", step)
        batches.append(feeder.feed([[r.randint(2, VOCAB, n).tolist() for n in (a, b, b)] for a, b in sizes]))
    return {"feed": fed(batches), "fetch": [loss]}


@net("row_branches")
def row_branches(fluid):
    """IfElse by rows, a rate by Switch over a counter, and a layer and its gradient in Python."""
    L = fluid.layers
    image = L.data("x", [6], dtype="float32")
    label = L.data("y", [1], dtype="int64")
    limit = L.fill_constant_batch_size_like(image, [-1, 1], "float32", 0.0)
    cond = L.less_than(L.reduce_sum(image, dim=1, keep_dim=True), limit)
    branch = L.IfElse(cond)
    with branch.true_block():
        part = branch.input(image)
        branch.output(L.fc(L.fc(part, 8, act="tanh"), 3, act="softmax"))
    with branch.false_block():
        part = branch.input(image)
        branch.output(L.fc(L.fc(part, 5, act="relu"), 3, act="softmax"))
    prob = branch()[0]
    smooth = fluid.default_main_program().current_block().create_var(name="smooth", dtype="float32", shape=[-1, 3])
    L.py_func(lambda x: np.asarray(x) * 0.9 + 0.1 / 3, prob, smooth, lambda x, out, grad: np.asarray(grad) * 0.9)
    loss = L.mean(L.cross_entropy(smooth, label))
    step = L.autoincreased_step_counter(begin=0)
    rate = L.create_global_var([1], 0.0, "float32", persistable=True, name="rate")
    with L.Switch() as switch:
        with switch.case(L.less_than(L.cast(step, "float32"), L.fill_constant([1], "float32", 1.0))):
            L.assign(L.fill_constant([1], "float32", 0.5), rate)
        with switch.case(L.equal(step, L.fill_constant([1], "int64", 1))):
            L.assign(L.fill_constant([1], "float32", 0.2), rate)
        with switch.default():
            L.assign(rate * 0.5, rate)
    fluid.optimizer.SGD(rate).minimize(loss)

    def feed(number):
        r = drawn("branches", number)
        return {"x": r.uniform(-1, 1, (5, 6)).astype("float32"), "y": r.randint(0, 3, (5, 1))}
    return {"feed": feed, "fetch": [loss, prob, rate]}


@net("wavenet")
def wavenet(fluid):
    """Dilated causal convolutions with gates and skips; a transposed convolution upsamples the frames."""
    L, channels, samples = fluid.layers, 4, 16
    audio = fluid.data("audio", [None, samples], "float32")

    def given(shape, i):  # the length of each filter is computed from the first values
        return fluid.initializer.NumpyArrayInitializer(drawn("filter", i).normal(0, 0.3, shape).astype("float32"))

    mel = fluid.data("mel", [None, 3, 4], "float32")
    cond = L.squeeze(L.conv2d_transpose(L.unsqueeze(mel, [2]), num_filters=3, filter_size=[1, 8], stride=[1, 4],
                                        padding=[0, 2], act=None, param_attr="up_w"), [2])
    cond = L.leaky_relu(cond, alpha=0.4)
    x = L.conv2d(L.unsqueeze(L.unsqueeze(audio, axes=[1]), axes=[1]), channels, filter_size=1)
    cond, skips = L.unsqueeze(cond, [2]), []
    for i in range(3):
        dilation = 2 ** i
        padded = L.pad(x, paddings=[0, 0, 0, 0, 0, 0, dilation, 0])
        gates = L.conv2d(padded, 2 * channels, filter_size=[1, 2], dilation=[1, dilation], bias_attr=None,
                         param_attr=fluid.WeightNormParamAttr(dim=0, name="dilated_%d" % i, initializer=given(
                             (2 * channels, channels, 1, 2), i)))
        gates = gates + L.conv2d(cond, 2 * channels, filter_size=1, bias_attr=False)
        content, gate = L.split(gates, num_or_sections=2, dim=1)
        z = L.tanh(content) * L.sigmoid(gate)
        skips.append(L.conv2d(z, channels, 1))
        x = L.scale(x + L.conv2d(z, channels, 1), scale=np.sqrt(0.5))
    out = L.relu(L.sum(skips))
    out = L.transpose(L.squeeze(L.conv2d(out, 2, 1), [2]), [0, 2, 1])
    mean, log_std = L.split(out, [1, 1], dim=-1)
    log_std = L.clip(log_std, min=-7.0, max=8.0)
    target = L.unsqueeze(L.concat([L.slice(audio, [1], [1], [samples]), L.slice(audio, [1], [0], [1])], 1), [2])
    normal = 0.5 * L.square((target - mean) / L.exp(log_std)) + log_std + 0.5 * np.log(2 * np.pi)
    loss = L.reduce_mean(normal)
    clip = fluid.clip.GradientClipByGlobalNorm(0.5)
    fluid.optimizer.Adam(L.noam_decay(4, 2), epsilon=1e-3, grad_clip=clip).minimize(loss)

    def feed(step):
        r = drawn("wavenet", step)
        return {"audio": r.uniform(-1, 1, (2, samples)).astype("float32"),
                "mel": r.uniform(-1, 1, (2, 3, 4)).astype("float32")}
    return {"feed": feed, "fetch": [loss, mean]}


@net("conv_seq2seq")
def conv_seq2seq(fluid):
    """Gated convolutions of both languages with attention in each layer, positions by cumulated ones."""
    L, length = fluid.layers, 5
    src, trg = [fluid.data(n, [None, length], "int64") for n in ("src", "trg")]
    label = fluid.data("label", [None, length, 1], "int64")

    def embed(ids, name):
        emb = fluid.embedding(ids, [VOCAB, H], param_attr=name + "_emb")
        ones = L.cast(L.ones_like(ids), "float32")
        place = L.cast(L.cumsum(ones, axis=1, exclusive=True), "int64")
        return emb + fluid.embedding(place, [length, H], param_attr=name + "_place")

    def glu(x, left, right):
        x = L.pad2d(L.unsqueeze(L.transpose(x, [0, 2, 1]), [2]), paddings=[0, 0, left, right], mode="constant")
        y = L.squeeze(L.conv2d(x, 2 * H, filter_size=[1, 3]), axes=[2])
        return L.transpose(fluid.nets.glu(y, dim=1), [0, 2, 1])

    x = first = embed(src, "src")
    for _ in range(2):
        x = (glu(x, 1, 1) + x) * np.float32(0.5) ** 0.5
    y = start = embed(trg, "trg")
    for _ in range(2):
        hidden = glu(y, 2, 0)
        query = L.fc(hidden, H, num_flatten_dims=2) + start
        context = fluid.nets.scaled_dot_product_attention(query, x, x + first, num_heads=1, dropout_rate=0.0)
        y = (hidden + context + y) * float(np.sqrt(0.5))
    logits = L.fc(y, VOCAB, num_flatten_dims=2)
    cost = L.softmax_with_cross_entropy(logits, label)
    loss = L.mean(cost)
    fluid.optimizer.MomentumOptimizer(0.1, momentum=0.99, use_nesterov=True).minimize(loss)

    def feed(step):
        r = drawn("conv seq2seq", step)
        return {"src": r.randint(0, VOCAB, (2, length)), "trg": r.randint(0, VOCAB, (2, length)),
                "label": r.randint(0, VOCAB, (2, length, 1))}
    return {"feed": feed, "fetch": [loss, cost, context]}
