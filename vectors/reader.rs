// rustc -O reader.rs && ./reader drf.txt weighted.txt queues.txt: compares `shares`, to be replaced by yours, with vectors.
use std::{env, fs, process};

#[derive(Default)]
struct Node { name: String, parent: Option<usize>, weight: f64, wants: f64, demand: Vec<f64>, share: f64 } // queues demand nothing

#[derive(Default)]
struct Vector { name: String, capacity: Vec<f64>, nodes: Vec<Node>, beyond: bool }

fn number(text: &str) -> f64 {
    let mut parts = text.split('/').map(|part| part.parse().unwrap_or(f64::INFINITY)); // "-" is no number
    parts.next().unwrap() / parts.next().unwrap_or(1.0)
}

fn read(text: &str) -> Vec<Vector> {
    let mut vectors: Vec<Vector> = vec![];
    for words in text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).filter(|w| !w.is_empty() && w[0] != "#") {
        if words[0] == "vector" {
            vectors.push(Vector { name: words[1].to_string(), ..Default::default() });
            continue;
        }
        let vector = vectors.last_mut().unwrap();
        match words[0] {
            "capacity" => vector.capacity = words[1..].iter().map(|word| number(word)).collect(),
            "queue" | "user" => {
                let mut node = Node { name: words[1].to_string(), weight: number(words[3]), ..Default::default() };
                node.parent = vector.nodes.iter().position(|other| other.name == words[2]);
                if words[0] == "user" {
                    node.wants = number(words[4]);
                    node.demand = words[5..words.len() - 3].iter().map(|word| number(word)).collect();
                    node.share = number(words[words.len() - 1]);
                }
                vector.nodes.push(node);
            }
            _ => vector.beyond = true, // limits, quotas, priorities, shares of queues that do not add up
        }
    }
    vectors
}

// Progressive filling of a tree of weights in doubles: dominant shares by node, 0 for queues.
fn shares(capacity: &[f64], nodes: &[Node]) -> Vec<f64> {
    let (size, mut left) = (nodes.len(), capacity.to_vec());
    let unit = |node: &Node| node.demand.iter().zip(capacity).filter(|(d, _)| **d > 0.0).map(|(d, c)| d / c).fold(0.0, f64::max);
    let units: Vec<f64> = nodes.iter().map(unit).collect();
    let mut rising: Vec<bool> = (0..size).map(|k| units[k] > 0.0 && units[k].is_finite() && nodes[k].wants > 0.0).collect();
    let mut share = vec![0.0; size];
    while rising.contains(&true) {
        let mut active = rising.clone();
        (0..size).rev().for_each(|k| if active[k] { nodes[k].parent.map(|p| active[p] = true); }); // parents stand above
        let (mut total, mut rate) = (vec![0.0; size + 1], vec![0.0; size]);
        (0..size).filter(|k| active[*k]).for_each(|k| total[nodes[k].parent.unwrap_or(size)] += nodes[k].weight);
        for k in (0..size).filter(|k| active[*k]) {
            rate[k] = nodes[k].weight / total[nodes[k].parent.unwrap_or(size)] * nodes[k].parent.map_or(1.0, |p| rate[p]);
        }
        let users: Vec<usize> = (0..size).filter(|k| rising[*k]).collect();
        let speed: Vec<f64> = (0..left.len()).map(|r| users.iter().map(|&k| rate[k] / units[k] * nodes[k].demand[r]).sum()).collect();
        let meets: Vec<f64> = (0..left.len()).map(|r| if speed[r] > 0.0 { left[r] / speed[r] } else { f64::INFINITY }).collect();
        let met = |k: usize| (nodes[k].wants * units[k] - share[k]) / rate[k];
        let step = users.iter().map(|&k| met(k)).chain(meets.iter().copied()).fold(f64::INFINITY, f64::min).max(0.0);
        let near = |time: f64| time <= step * (1.0 + 1e-12);
        let stops: Vec<usize> = users.iter().copied().filter(|&k| near(met(k)) || (0..left.len()).any(|r| near(meets[r]) && nodes[k].demand[r] > 0.0)).collect();
        users.iter().for_each(|&k| share[k] += step * rate[k]);
        (0..left.len()).for_each(|r| left[r] -= step * speed[r]);
        stops.iter().for_each(|&k| rising[k] = false);
    }
    share
}

fn main() {
    let (mut agree, mut differ, mut beyond) = (0, 0, 0);
    for vector in env::args().skip(1).flat_map(|file| read(&fs::read_to_string(file).unwrap())) {
        if vector.beyond {
            beyond += 1;
            continue;
        }
        let found = shares(&vector.capacity, &vector.nodes);
        match vector.nodes.iter().zip(&found).find(|(node, share)| (node.share - *share).abs() > 1e-9 * node.share) {
            None => agree += 1,
            Some((node, share)) => { differ += 1; println!("{} {}: {}, not {}", vector.name, node.name, node.share, share) }
        }
    }
    println!("{} agree, {} differ, {} not tried", agree, differ, beyond);
    process::exit((differ > 0) as i32);
}
