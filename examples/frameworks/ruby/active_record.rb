# One hot row with Rails' Active Record: ruby active_record.rb setup|autocommit|transaction URL WORKERS SECONDS

require "active_record"
require "json"

WARM_UP_SECONDS = 2
# The workers are threads of several processes, as in the application server Puma.
THREADS_PER_PROCESS = 8

variant, url, workers, seconds = ARGV

class Item < ActiveRecord::Base
end

def setup
  ActiveRecord::Schema.verbose = false
  ActiveRecord::Schema.define do
    create_table(:items) { |table| table.integer :sold, null: false }
  end
  Item.create!(id: 1, sold: 0)
end

def autocommit
  Item.increment_counter(:sold, 1)
end

def transaction
  item = Item.find(1)
  item.with_lock do
    item.sold += 1
    item.save!
  end
end

# The acknowledged updates of one process, and their number per second after the warm-up.
def run(variant, seconds)
  done = Array.new(THREADS_PER_PROCESS, 0)
  stopped = false
  threads = THREADS_PER_PROCESS.times.map do |number|
    Thread.new do
      until stopped
        send(variant)
        done[number] += 1
      end
    end
  end
  threads.each { |thread| thread.report_on_exception = false }
  sleep WARM_UP_SECONDS
  before, started = done.sum, Process.clock_gettime(Process::CLOCK_MONOTONIC)
  sleep seconds
  per_second = (done.sum - before) / (Process.clock_gettime(Process::CLOCK_MONOTONIC) - started)
  stopped = true
  threads.each(&:join)
  { updates: done.sum, per_second: per_second }
end

def connect(url)
  ActiveRecord::Base.establish_connection("#{url}?pool=#{THREADS_PER_PROCESS}")
end

if variant == "setup"
  connect(url)
  setup
else
  children = (workers.to_i / THREADS_PER_PROCESS).times.map do
    reader, writer = IO.pipe
    pid = fork do
      connect(url)
      writer.puts JSON.generate(run(variant, seconds.to_f))
    end
    writer.close
    [pid, reader]
  end
  results = children.map do |pid, reader|
    line = reader.read
    Process.wait(pid)
    abort "a worker failed" unless $?.success?
    JSON.parse(line)
  end
  puts JSON.generate(
    updates: results.sum { |result| result["updates"] },
    per_second: results.sum { |result| result["per_second"] }
  )
end
