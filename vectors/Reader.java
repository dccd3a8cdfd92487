// javac Reader.java && java Reader drf.txt weighted.txt queues.txt: compares `shares`, to be replaced by yours, with vectors.
import java.nio.file.*;
import java.util.*;

class Reader {
    static class Node { String name; int parent; double weight, wants, share; double[] demand = {}; } // queues demand nothing

    static class Vector { String name; double[] capacity; List<Node> nodes = new ArrayList<>(); boolean beyond; }

    static double number(String text) {
        if (text.equals("-")) return Double.POSITIVE_INFINITY;
        String[] parts = text.split("/");
        return Double.parseDouble(parts[0]) / (parts.length > 1 ? Double.parseDouble(parts[1]) : 1);
    }

    static double[] numbers(String[] words, int from, int to) {
        return Arrays.stream(words, from, to).mapToDouble(Reader::number).toArray();
    }

    static List<Vector> read(String file) throws Exception {
        List<Vector> vectors = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(file))) {
            String[] words = line.trim().split("\\s+");
            if (line.isBlank() || words[0].equals("#")) continue;
            if (words[0].equals("vector")) vectors.add(new Vector());
            Vector vector = vectors.get(vectors.size() - 1);
            if (words[0].equals("vector")) vector.name = words[1];
            else if (words[0].equals("capacity")) vector.capacity = numbers(words, 1, words.length);
            else if (words[0].equals("queue") || words[0].equals("user")) {
                Node node = new Node();
                node.name = words[1];
                node.parent = vector.nodes.stream().map(other -> other.name).toList().indexOf(words[2]); // -1: the root
                node.weight = number(words[3]);
                if (words[0].equals("user")) {
                    node.wants = number(words[4]);
                    node.demand = numbers(words, 5, words.length - 3);
                    node.share = number(words[words.length - 1]);
                }
                vector.nodes.add(node);
            } else vector.beyond = true; // limits, quotas, priorities, shares of queues that do not add up
        }
        return vectors;
    }

    // Progressive filling of a tree of weights in doubles: dominant shares by node, 0 for queues.
    static double[] shares(double[] capacity, List<Node> nodes) {
        int size = nodes.size();
        double[] left = capacity.clone(), share = new double[size], unit = new double[size];
        Set<Integer> rising = new TreeSet<>();
        for (int k = 0; k < size; k++) {
            Node node = nodes.get(k);
            for (int r = 0; r < node.demand.length; r++)
                if (node.demand[r] > 0) unit[k] = Math.max(unit[k], node.demand[r] / capacity[r]);
            if (unit[k] > 0 && unit[k] < Double.POSITIVE_INFINITY && node.wants > 0) rising.add(k);
        }
        while (!rising.isEmpty()) {
            Set<Integer> active = new TreeSet<>();
            for (int k : rising) for (int at = k; at >= 0; at = nodes.get(at).parent) active.add(at);
            double[] total = new double[size + 1], rate = new double[size], speed = new double[left.length];
            for (int k : active) total[nodes.get(k).parent + 1] += nodes.get(k).weight;
            for (int k : active) { // parents stand above
                int parent = nodes.get(k).parent;
                rate[k] = nodes.get(k).weight / total[parent + 1] * (parent < 0 ? 1 : rate[parent]);
            }
            double step = Double.POSITIVE_INFINITY;
            double[] stop = new double[size]; // time of its own want, or of a resource that it demands
            for (int k : rising) for (int r = 0; r < left.length; r++) speed[r] += rate[k] / unit[k] * nodes.get(k).demand[r];
            for (int k : rising) {
                stop[k] = (nodes.get(k).wants * unit[k] - share[k]) / rate[k];
                for (int r = 0; r < left.length; r++)
                    if (nodes.get(k).demand[r] > 0) stop[k] = Math.min(stop[k], left[r] / speed[r]);
                step = Math.min(step, stop[k]);
            }
            double rise = Math.max(step, 0);
            for (int k : rising) share[k] += rise * rate[k];
            for (int r = 0; r < left.length; r++) left[r] -= rise * speed[r];
            rising.removeIf(k -> stop[k] <= rise * (1 + 1e-12));
        }
        return share;
    }

    public static void main(String[] files) throws Exception {
        int agree = 0, differ = 0, beyond = 0;
        for (String file : files) {
            for (Vector vector : read(file)) {
                String wrong = "";
                double[] found = vector.beyond ? null : shares(vector.capacity, vector.nodes);
                for (int k = 0; found != null && k < found.length; k++) {
                    Node node = vector.nodes.get(k);
                    if (Math.abs(found[k] - node.share) > 1e-9 * node.share)
                        wrong = vector.name + " " + node.name + ": " + node.share + ", not " + found[k];
                }
                if (vector.beyond) beyond++;
                else if (wrong.isEmpty()) agree++;
                else differ++;
                if (!wrong.isEmpty()) System.out.println(wrong);
            }
        }
        System.out.println(agree + " agree, " + differ + " differ, " + beyond + " not tried");
        System.exit(differ > 0 ? 1 : 0);
    }
}
