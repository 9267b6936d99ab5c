"""Reading text in images: CRNN with CTC, and an attention decoder with beam search."""
import math

import numpy as np
from harness import drawn, net

CLASSES, HEIGHT, WIDTH = 12, 16, 48


def lines_of_text(name, bounds=False):
    """step -> images and, back to back, the characters of each; with `bounds`, also shifted by a start and an end."""
    def feed(step):
        rng = drawn(name, step)
        lengths = [int(n) for n in rng.randint(2, 6, 3)]
        text = [rng.randint(2, CLASSES, (n, 1)) for n in lengths]
        result = {"pixel": rng.normal(0, 1, (3, 1, HEIGHT, WIDTH)).astype("float32")}
        if not bounds:
            return dict(result, label=(sum((t.tolist() for t in text), []), [lengths]))
        longer = [n + 1 for n in lengths]
        before = sum(([[0]] + t.tolist() for t in text), [])
        after = sum((t.tolist() + [[1]] for t in text), [])
        return dict(result, label_in=(before, [longer]), label_out=(after, [longer]))

    def typed(step):
        return {k: (np.array(v[0], "int32" if k == "label" else "int64"), v[1]) if isinstance(v, tuple) else v
                for k, v in feed(step).items()}
    return typed


class Encoder(object):
    """Groups of convolutions, columns as steps of a sequence, and two recurrent layers in opposite directions."""

    def __init__(self, fluid):
        self.fluid = fluid

    def conv_bn_pool(self, input, group, out_ch, act="relu", param=None, bias=None, pool=True):
        layers, tmp = self.fluid.layers, input
        for i in range(group):
            conv_std = math.sqrt(2.0 / (9.0 * tmp.shape[1]))
            conv_param = self.fluid.ParamAttr(initializer=self.fluid.initializer.Normal(0.0, conv_std)) \
                if param is None else param
            tmp = layers.conv2d(input=tmp, num_filters=out_ch[i], filter_size=3, padding=1, param_attr=conv_param,
                                act=None, use_cudnn=True)
            tmp = layers.batch_norm(input=tmp, act=act, param_attr=param, bias_attr=bias)
        if pool:
            tmp = layers.pool2d(input=tmp, pool_size=2, pool_type="max", pool_stride=2, use_cudnn=True, ceil_mode=True)
        return tmp

    def features(self, images):
        fluid = self.fluid
        tmp = self.conv_bn_pool(images, 2, [4, 4])
        tmp = self.conv_bn_pool(tmp, 1, [8])
        return self.conv_bn_pool(tmp, 1, [8], pool=False,
                                 bias=fluid.ParamAttr(initializer=fluid.initializer.Normal(0.0, 0.0)))

    def encode(self, images, rnn_hidden_size=8):
        fluid, layers = self.fluid, self.fluid.layers
        conv_features = self.features(images)
        sliced = layers.im2sequence(input=conv_features, stride=[1, 1], filter_size=[conv_features.shape[2], 1])
        para_attr = fluid.ParamAttr(initializer=fluid.initializer.Normal(0.0, 0.2))
        bias_attr = fluid.ParamAttr(initializer=fluid.initializer.Normal(0.0, 0.2))
        bias_attr_nobias = fluid.ParamAttr(initializer=fluid.initializer.Constant(0.0), learning_rate=2.0)
        fc_1 = layers.fc(input=sliced, size=rnn_hidden_size * 3, param_attr=para_attr, bias_attr=bias_attr_nobias)
        fc_2 = layers.fc(input=sliced, size=rnn_hidden_size * 3, param_attr=para_attr, bias_attr=bias_attr_nobias)
        gru_forward = layers.dynamic_gru(input=fc_1, size=rnn_hidden_size, param_attr=para_attr, bias_attr=bias_attr,
                                         candidate_activation="relu")
        gru_backward = layers.dynamic_gru(input=fc_2, size=rnn_hidden_size, is_reverse=True, param_attr=para_attr,
                                          bias_attr=bias_attr, candidate_activation="relu")
        return gru_forward, gru_backward


@net("crnn_ctc")
def crnn_ctc(fluid):
    layers = fluid.layers
    images = layers.data(name="pixel", shape=[1, HEIGHT, WIDTH], dtype="float32")
    label = layers.data(name="label", shape=[1], dtype="int32", lod_level=1)
    forward, backward = Encoder(fluid).encode(images)
    out = layers.fc(input=[forward, backward], size=CLASSES + 1,
                    param_attr=fluid.ParamAttr(initializer=fluid.initializer.Normal(0.0, 0.2)))
    cost = layers.warpctc(input=out, label=label, blank=CLASSES, norm_by_times=True)
    sum_cost = layers.reduce_sum(cost)
    decoded = layers.ctc_greedy_decoder(input=out, blank=CLASSES)
    casted_label = layers.cast(x=label, dtype="int64")
    error = fluid.evaluator.EditDistance(input=decoded, label=casted_label)
    inference_program = fluid.default_main_program().clone(for_test=True)
    rate = layers.piecewise_decay([1, 2], [1e-2, 1e-3, 1e-4])
    optimizer = fluid.optimizer.Momentum(learning_rate=rate, momentum=0.9,
                                         regularization=fluid.regularizer.L2Decay(4e-4))
    _, params_grads = optimizer.minimize(sum_cost)
    model_average = fluid.optimizer.ModelAverage(0.15, min_average_window=2, max_average_window=4)
    return {"feed": lines_of_text("crnn_ctc"), "fetch": [sum_cost] + error.metrics + [out],
            "test": inference_program, "test_fetch": [decoded, out], "around_test": model_average.apply}


class AttentionReader(Encoder):
    decoder_size, word_vector_dim = 8, 6

    def attention(self, encoder_vec, encoder_proj, decoder_state):
        layers = self.fluid.layers
        decoder_state_proj = layers.fc(input=decoder_state, size=self.decoder_size, bias_attr=False,
                                       param_attr=self.fluid.ParamAttr(name="attention_state_w"))
        decoder_state_expand = layers.sequence_expand(x=decoder_state_proj, y=encoder_proj)
        concated = layers.elementwise_add(encoder_proj, decoder_state_expand)
        concated = layers.tanh(x=concated)
        attention_weights = layers.fc(input=concated, size=1, act=None, bias_attr=False,
                                      param_attr=self.fluid.ParamAttr(name="attention_w"))
        attention_weights = layers.sequence_softmax(input=attention_weights)
        weights_reshape = layers.reshape(x=attention_weights, shape=[-1])
        scaled = layers.elementwise_mul(x=encoder_vec, y=weights_reshape, axis=0)
        return layers.sequence_pool(input=scaled, pool_type="sum")

    def step(self, current_word, state, encoder_vec, encoder_proj):
        fluid, layers = self.fluid, self.fluid.layers
        context = self.attention(encoder_vec, encoder_proj, state)
        decoder_inputs = layers.fc(
            input=[context, current_word], size=self.decoder_size * 3, bias_attr=False,
            param_attr=[fluid.ParamAttr(name="decoder_context_w"), fluid.ParamAttr(name="decoder_word_w")])
        h, _, _ = layers.gru_unit(
            input=decoder_inputs, hidden=state, size=self.decoder_size * 3,
            param_attr=fluid.ParamAttr(name="gru_unit_w"), bias_attr=fluid.ParamAttr(name="gru_unit_b"))
        out = layers.fc(input=h, size=CLASSES, bias_attr=fluid.ParamAttr(name="out_b"), act="softmax",
                        param_attr=fluid.ParamAttr(name="out_w"))
        return h, out

    def memory(self, images):
        layers = self.fluid.layers
        forward, backward = self.encode(images)
        encoded_vector = layers.concat(input=[forward, backward], axis=1)
        encoded_proj = layers.fc(input=encoded_vector, size=self.decoder_size, bias_attr=False)
        backward_first = layers.sequence_pool(input=backward, pool_type="first")
        boot = layers.fc(input=backward_first, size=self.decoder_size, act="relu", bias_attr=False)
        return encoded_vector, encoded_proj, boot

    def embedding(self, word):
        return self.fluid.layers.embedding(input=word, size=[CLASSES, self.word_vector_dim], dtype="float32",
                                           param_attr=self.fluid.ParamAttr(name="word_embedding"))

    def train(self, images, label_in):
        layers = self.fluid.layers
        encoded_vector, encoded_proj, boot = self.memory(images)
        trg_embedding = self.embedding(label_in)
        rnn = layers.DynamicRNN()
        with rnn.block():
            current_word = rnn.step_input(trg_embedding)
            encoder_vec = rnn.static_input(encoded_vector)
            encoder_proj = rnn.static_input(encoded_proj)
            hidden_mem = rnn.memory(init=boot, need_reorder=True)
            h, out = self.step(current_word, hidden_mem, encoder_vec, encoder_proj)
            rnn.update_memory(hidden_mem, h)
            rnn.output(out)
        return rnn()

    def greedy(self, images, most=5):
        """While a counter is below the longest line: the most probable character of each step is the next input."""
        layers = self.fluid.layers
        encoded_vector, encoded_proj, boot = self.memory(images)
        counter = layers.zeros(shape=[1], dtype="int64", force_cpu=True)
        array_len = layers.fill_constant(shape=[1], dtype="int64", value=most)
        states = layers.array_write(boot, i=counter)
        start = layers.fill_constant_batch_size_like(boot, [-1, 1], "int64", 0)
        words = layers.array_write(start, i=counter)
        cond = layers.less_than(x=counter, y=array_len)
        while_op = layers.While(cond=cond)
        with while_op.block():
            word = layers.array_read(array=words, i=counter)
            state = layers.array_read(array=states, i=counter)
            h, out = self.step(self.embedding(word), state, encoded_vector, encoded_proj)
            _, best = layers.topk(out, k=1)
            layers.increment(x=counter, value=1, in_place=True)
            layers.array_write(h, array=states, i=counter)
            layers.array_write(best, array=words, i=counter)
            layers.less_than(x=counter, y=array_len, cond=cond)
        found, _ = layers.tensor_array_to_tensor(words, axis=1)
        return found


@net("ocr_attention")
def ocr_attention(fluid):
    layers = fluid.layers

    def images():
        return layers.data(name="pixel", shape=[1, HEIGHT, WIDTH], dtype="float32")

    label_in = layers.data(name="label_in", shape=[1], dtype="int64", lod_level=1)
    label_out = layers.data(name="label_out", shape=[1], dtype="int64", lod_level=1)
    prediction = AttentionReader(fluid).train(images(), label_in)
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByValue(1.0))
    label_out.stop_gradient = True
    cost = layers.cross_entropy(input=prediction, label=label_out)
    sum_cost = layers.reduce_sum(cost)
    optimizer = fluid.optimizer.Adadelta(learning_rate=1.0, epsilon=1e-6, rho=0.9,
                                         regularization=fluid.regularizer.L2Decay(4e-4))
    optimizer.minimize(sum_cost)
    _, max_index = layers.topk(prediction, k=1)
    error = layers.edit_distance(max_index, label_out, normalized=False, ignored_tokens=[0, 1])
    test_program = fluid.Program()
    with fluid.program_guard(test_program, fluid.Program()), fluid.unique_name.guard():
        ids = AttentionReader(fluid).greedy(images())
    return {"feed": lines_of_text("ocr_attention", bounds=True), "fetch": [sum_cost, prediction] + list(error),
            "test": test_program, "test_fetch": [ids]}
