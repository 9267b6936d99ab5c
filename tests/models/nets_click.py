"""Click-through nets: wide & deep, DeepFM, xDeepFM, DCN, FNN, PNN, NFM, AutoInt, ESMM and MMoE."""
import math

import numpy
from click_inputs import BATCH, DENSE, FIELDS, IDS, D, click_inputs, factors, label_loss, second_order, some, truncated
from harness import net
from sequence_inputs import fed


@net("wide_deep")
def wide_deep(fluid):
    """A linear part that Adagrad trains, and a deep part that Ftrl trains."""
    slots = [fluid.layers.data(name="C%d" % i, shape=[1], lod_level=1, dtype="int64") for i in range(3)]
    dense = fluid.data(name="dense_input", shape=[None, DENSE], dtype="float32")
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")

    def embedding_layer(input):
        emb = fluid.layers.embedding(input=input, is_sparse=True, size=[IDS, D], param_attr=fluid.ParamAttr(
            name="SparseFeatFactors", initializer=fluid.initializer.Uniform()))
        return fluid.layers.sequence_pool(input=emb, pool_type="average")

    layer = fluid.layers.concat(list(map(embedding_layer, slots)) + [dense], axis=1)
    for i, width in enumerate([12, 8]):
        layer = fluid.layers.fc(input=layer, size=width, act="relu", name="deep_%d" % i, param_attr=fluid.ParamAttr(
            initializer=fluid.initializer.Normal(scale=1 / math.sqrt(layer.shape[1]))))
    deep = fluid.layers.fc(layer, 1, name="deep_out")
    wide = [fluid.layers.sequence_pool(fluid.layers.embedding(
        s, size=[IDS, 1], is_sparse=True, param_attr=fluid.ParamAttr(name="wide_w")), "sum") for s in slots]
    logit = fluid.layers.elementwise_add(fluid.layers.sums(wide), deep)
    predict = fluid.layers.sigmoid(logit)
    test_program = fluid.default_main_program().clone(for_test=True)
    loss = fluid.layers.mean(fluid.layers.sigmoid_cross_entropy_with_logits(
        x=logit, label=fluid.layers.cast(label, "float32")))
    names = [p.name for p in fluid.default_main_program().global_block().all_parameters()]
    fluid.optimizer.Ftrl(0.05, l1=1e-4, l2=1e-4).minimize(loss, parameter_list=[n for n in names if "deep" in n])
    fluid.optimizer.Adagrad(0.05).minimize(loss, parameter_list=[n for n in names if "deep" not in n])
    feeder = fluid.DataFeeder(feed_list=slots + [dense, label], place=fluid.CPUPlace())
    feeds = []
    for seed in (21, 22, 23):
        rng = numpy.random.RandomState(seed)
        rows = [tuple(rng.randint(0, IDS, n).tolist() for n in rng.randint(1, 5, 3)) +
                (rng.uniform(-1, 1, DENSE).astype("float32"), [int(rng.randint(0, 2))]) for _ in range(BATCH)]
        feeds.append(feeder.feed(rows))
    return {"fetch": [loss, predict], "feed": fed(feeds), "test": test_program, "test_fetch": [predict]}


@net("deepfm", exact=True)  # the padding row of the sparse tables is trained
def deepfm(fluid):
    feat_idx, feat_value, label = click_inputs(fluid)
    first = fluid.layers.reduce_sum(factors(fluid, feat_idx, feat_value, 1, "first", is_sparse=True), 1)
    emb = factors(fluid, feat_idx, feat_value, D, "feat", is_sparse=True)
    y_dnn = fluid.layers.reshape(emb, [-1, FIELDS * D])
    for s in [10, 8]:
        y_dnn = fluid.layers.fc(input=y_dnn, size=s, act="relu", param_attr=fluid.ParamAttr(
            initializer=truncated(fluid, 0.3)), bias_attr=fluid.ParamAttr(initializer=truncated(fluid, 0.1)))
    y_dnn = fluid.layers.fc(input=y_dnn, size=1, act=None)
    b = fluid.layers.create_parameter(shape=[1], dtype="float32",
                                      default_initializer=fluid.initializer.ConstantInitializer(value=0))
    predict = fluid.layers.sigmoid(b + first + second_order(fluid.layers, emb) + y_dnn)
    loss, auc = label_loss(fluid, predict, label)
    fluid.optimizer.SGD(0.1, regularization=None).minimize(loss)
    return {"fetch": [loss, predict, auc], "feed": fed(some(["feat_idx", "feat_value", "label"]))}


@net("xdeepfm")
def xdeepfm(fluid):
    """The compressed interaction network by convolutions over outer products."""
    feat_idx, feat_value, label = click_inputs(fluid)
    emb = factors(fluid, feat_idx, feat_value, D, "feat")
    x0 = fluid.layers.transpose(emb, [0, 2, 1])
    xs, last_s = [x0], FIELDS
    for s in [4, 3]:
        z = fluid.layers.matmul(fluid.layers.reshape(x0, [-1, D, FIELDS, 1]),
                                fluid.layers.reshape(xs[-1], [-1, D, 1, last_s]))
        z = fluid.layers.transpose(fluid.layers.reshape(z, [-1, D, FIELDS * last_s]), [0, 2, 1])
        z = fluid.layers.reshape(z, [-1, FIELDS * last_s, 1, D])
        x = fluid.layers.conv2d(z, num_filters=s, filter_size=(1, 1), padding="VALID", act=None, bias_attr=None,
                                param_attr=fluid.ParamAttr(initializer=truncated(fluid, 0.2)))
        xs.append(fluid.layers.transpose(fluid.layers.reshape(x, [-1, s, D]), [0, 2, 1]))
        last_s = s
    y_cin = fluid.layers.fc(fluid.layers.reduce_sum(fluid.layers.concat(xs[1:], axis=-1), 1), size=1)
    y_dnn = fluid.layers.fc(fluid.layers.fc(emb, 8, act="relu"), 1)
    linear = fluid.layers.reduce_sum(factors(fluid, feat_idx, feat_value, 1, "linear"), 1)
    predict = fluid.layers.sigmoid(linear + y_cin + y_dnn)
    loss, _ = label_loss(fluid, predict, label)
    fluid.optimizer.Adam(learning_rate=0.01, lazy_mode=True).minimize(loss)
    return {"fetch": [loss, predict], "feed": fed(some(["feat_idx", "feat_value", "label"]))}


@net("dcn")
def dcn(fluid):
    """Deep & cross, with a global clip, a decay of the cross weights, batch norm and RMSProp."""
    feat_idx, feat_value, label = click_inputs(fluid)
    dense = fluid.data(name="dense_input", shape=[None, DENSE], dtype="float32")
    emb = fluid.layers.reshape(factors(fluid, feat_idx, feat_value, D, "feat"), [-1, FIELDS * D])
    x0 = fluid.layers.concat([emb, fluid.layers.log(fluid.layers.abs(dense) + 1.0)], axis=-1)
    width = FIELDS * D + DENSE
    x, l2 = x0, []
    for i in range(2):
        w = fluid.layers.create_parameter([width], "float32", name="cross_w_%d" % i,
                                          default_initializer=fluid.initializer.Xavier(fan_in=width, fan_out=1))
        b = fluid.layers.create_parameter([width], "float32", name="cross_b_%d" % i, is_bias=True)
        xw = fluid.layers.reduce_sum(fluid.layers.elementwise_mul(x, w), dim=1, keep_dim=True)
        x = fluid.layers.elementwise_add(x0 * xw + x, b)
        l2.append(fluid.layers.reduce_sum(fluid.layers.square(w)))
    deep = fluid.layers.batch_norm(fluid.layers.fc(x0, 9, bias_attr=False), act="relu", moving_mean_name="bn_mean",
                                   moving_variance_name="bn_variance")
    predict = fluid.layers.fc(fluid.layers.concat([x, deep], -1), 1, act="sigmoid")
    loss, _ = label_loss(fluid, predict, label)
    loss = loss + 1e-3 * fluid.layers.sum(l2)
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(clip_norm=1.0))
    fluid.optimizer.RMSProp(fluid.layers.exponential_decay(0.02, 2, 0.9, staircase=True)).minimize(loss)
    return {"fetch": [loss, predict], "feed": fed(some(["feat_idx", "feat_value", "dense_input", "label"]))}
