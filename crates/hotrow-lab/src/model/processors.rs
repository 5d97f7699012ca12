//! Machines with cores, the threads that run on them, and the tasks of these threads.

use std::collections::VecDeque;

/// A task of a thread: its CPU time in nanoseconds, and what follows.
#[derive(Debug)]
struct Task<S> {
    cost: u64,
    step: S,
}

/// Threads that take their tasks from one queue.
#[derive(Debug)]
struct Threads<S> {
    machine: usize,
    /// The number of threads that are idle.
    idle: usize,
    /// The number of threads that wait for a core.
    ready: usize,
    queue: VecDeque<Task<S>>,
}

#[derive(Debug)]
struct Machine {
    cores: usize,
    free: usize,
    /// Threads that wait for a core, in order.
    waiting: VecDeque<usize>,
    busy: u64,
}

/// All machines.
#[derive(Debug)]
pub struct Processors<S> {
    machines: Vec<Machine>,
    threads: Vec<Threads<S>>,
}

/// A task that has got a core: it ends after `cost`, and the caller then reports it with [`Processors::end`].
#[derive(Debug)]
pub struct Started<S> {
    /// The threads that run it.
    pub threads: usize,
    /// Its CPU time in nanoseconds.
    pub cost: u64,
    /// What follows.
    pub step: S,
}

impl<S> Processors<S> {
    /// No machine.
    pub fn new() -> Self {
        Self { machines: Vec::new(), threads: Vec::new() }
    }

    /// Adds a machine and returns its number.
    pub fn machine(&mut self, cores: usize) -> usize {
        self.machines.push(Machine { cores, free: cores, waiting: VecDeque::new(), busy: 0 });
        self.machines.len() - 1
    }

    /// Adds threads of one program, and returns their number.
    pub fn threads(&mut self, machine: usize, number: usize) -> usize {
        self.threads.push(Threads { machine, idle: number, ready: 0, queue: VecDeque::new() });
        self.threads.len() - 1
    }

    /// Queues a task.
    pub fn queue(&mut self, threads: usize, cost: u64, step: S, started: &mut Vec<Started<S>>) {
        let own = &mut self.threads[threads];
        own.queue.push_back(Task { cost, step });
        if own.idle > 0 {
            own.idle -= 1;
            own.ready += 1;
            self.machines[own.machine].waiting.push_back(threads);
            self.start(self.threads[threads].machine, started);
        }
    }

    /// A task of these threads has ended.
    pub fn end(&mut self, threads: usize, started: &mut Vec<Started<S>>) {
        let own = &mut self.threads[threads];
        let machine = own.machine;
        self.machines[machine].free += 1;
        if own.queue.len() > own.ready {
            own.ready += 1;
            self.machines[machine].waiting.push_back(threads);
        } else {
            own.idle += 1;
        }
        self.start(machine, started);
    }

    fn start(&mut self, machine: usize, started: &mut Vec<Started<S>>) {
        let own = &mut self.machines[machine];
        while own.free > 0 {
            let Some(threads) = own.waiting.pop_front() else { return };
            let of = &mut self.threads[threads];
            of.ready -= 1;
            let Task { cost, step } = of.queue.pop_front().expect("a thread is ready for each of its tasks");
            own.free -= 1;
            own.busy += cost;
            started.push(Started { threads, cost, step });
        }
    }

    /// Forgets how busy everything was.
    pub fn reset(&mut self) {
        self.machines.iter_mut().for_each(|machine| machine.busy = 0);
    }

    /// The share of a machine's cores that was busy in this time.
    pub fn machine_busy(&self, machine: usize, time: u64) -> f64 {
        let machine = &self.machines[machine];
        machine.busy as f64 / (time as f64 * machine.cores as f64)
    }
}
