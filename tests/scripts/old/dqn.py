"""deep q learning on a small grid, with a target network that is synchronised by assign ops"""
from __future__ import print_function

from collections import deque

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.param_attr import ParamAttr

STATE, ACTIONS, GAMMA, MEMORY = 4, 3, 0.9, 200


class World(object):
    def __init__(self):
        self.rng = np.random.RandomState(11)

    def reset(self):
        self.state = self.rng.uniform(-1, 1, STATE).astype('float32')
        return self.state

    def step(self, action):
        self.state = np.roll(self.state, action).astype('float32') * 0.95
        reward = float(self.state[0])
        return self.state, reward, abs(self.state).max() < 0.3


class DQNAgent(object):
    def __init__(self, hidden=12):
        self.hidden = hidden
        self._build_net()
        self.fluid_exe = fluid.Executor(fluid.CPUPlace())
        self.fluid_exe.run(fluid.default_startup_program())

    def get_DQN_prediction(self, state, target):
        variable_field = 'target' if target else 'policy'
        fc = state
        for i, size in enumerate([self.hidden, self.hidden, ACTIONS]):
            fc = fluid.layers.fc(input=fc, size=size, act='relu' if i < 2 else None,
                                 param_attr=ParamAttr(name='{}_fc{}'.format(variable_field, i)),
                                 bias_attr=ParamAttr(name='{}_fc{}_b'.format(variable_field, i)))
        return fc

    def _inputs(self):
        state = fluid.layers.data(name='state', shape=[STATE], dtype='float32')
        action = fluid.layers.data(name='action', shape=[1], dtype='int32')
        reward = fluid.layers.data(name='reward', shape=[], dtype='float32')
        next_s = fluid.layers.data(name='next_s', shape=[STATE], dtype='float32')
        isOver = fluid.layers.data(name='isOver', shape=[], dtype='bool')
        return state, action, reward, next_s, isOver

    def _build_net(self):
        self.predict_program, self.train_program, self._sync_program = (fluid.Program() for _ in range(3))
        with fluid.program_guard(self.predict_program):
            state = self._inputs()[0]
            self.pred_value = self.get_DQN_prediction(state, target=False)
            self.predict_program = self.predict_program.clone(for_test=True)
        with fluid.program_guard(self.train_program):
            state, action, reward, next_s, isOver = self._inputs()
            pred_value = self.get_DQN_prediction(state, target=False)
            reward = fluid.layers.clip(reward, min=-1.0, max=1.0)
            action_onehot = fluid.layers.cast(fluid.layers.one_hot(action, ACTIONS), dtype='float32')
            pred_action_value = fluid.layers.reduce_sum(fluid.layers.elementwise_mul(action_onehot, pred_value), dim=1)
            targetQ_predict_value = self.get_DQN_prediction(next_s, target=True)
            best_v = fluid.layers.reduce_max(targetQ_predict_value, dim=1)
            best_v.stop_gradient = True
            target = reward + (1.0 - fluid.layers.cast(isOver, dtype='float32')) * GAMMA * best_v
            cost = fluid.layers.square_error_cost(pred_action_value, target)
            self.cost = fluid.layers.reduce_mean(cost)
            fluid.optimizer.Adam(1e-2, epsilon=1e-3).minimize(self.cost)
        params = list(self.train_program.list_vars())
        policy = sorted([v for v in params if v.name.startswith('policy') and 'GRAD' not in v.name
                         and v.persistable and 'moment' not in v.name and 'pow' not in v.name], key=lambda v: v.name)
        target = sorted([v for v in params if v.name.startswith('target') and v.persistable], key=lambda v: v.name)
        assert len(policy) == len(target) == 6, (policy, target)
        with fluid.program_guard(self._sync_program):
            block = self._sync_program.global_block()
            for source, to in zip(policy, target):
                block.create_var(name=source.name, shape=source.shape, dtype='float32', persistable=True)
                block.create_var(name=to.name, shape=to.shape, dtype='float32', persistable=True)
                fluid.layers.assign(block.var(source.name), block.var(to.name))

    def act(self, state, rng, exploration):
        if rng.uniform() < exploration:
            return int(rng.randint(ACTIONS))
        pred = self.fluid_exe.run(self.predict_program, feed={'state': state.reshape(1, STATE)},
                                  fetch_list=[self.pred_value])[0]
        return int(np.argmax(np.squeeze(pred)))


def main():
    agent, world, rng, memory = DQNAgent(), World(), np.random.RandomState(4), deque(maxlen=MEMORY)
    steps = 0
    for episode in range(8):
        state, total, over, losses = world.reset(), 0.0, False, []
        while not over:
            action = agent.act(state, rng, 0.3)
            after, reward, over = world.step(action)
            memory.append((state, [action], reward, after, over))
            total, state, steps = total + reward, after, steps + 1
            if steps % 10 == 0:
                agent.fluid_exe.run(agent._sync_program)
            if steps > 16 and steps % 2 == 0:
                rows = [memory[int(i)] for i in rng.randint(0, len(memory), 8)]
                columns = zip(('state', 'action', 'reward', 'next_s', 'isOver'), zip(*rows),
                              ('float32', 'int32', 'float32', 'float32', 'bool'))
                feed = {name: np.array(values).astype(kind) for name, values, kind in columns}
                losses.append(agent.fluid_exe.run(agent.train_program, feed=feed, fetch_list=[agent.cost])[0])
        print("episode %d steps %d reward %.4f loss %.5f" % (episode, steps, total, np.mean(losses) if losses else 0))


if __name__ == '__main__':
    main()
