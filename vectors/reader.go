// go run reader.go drf.txt weighted.txt queues.txt: compares `shares`, to be replaced by yours, with vectors.
package main

import (
	"fmt"
	"math"
	"math/big"
	"os"
	"strings"
)

type node struct {
	name                 string
	parent               int // -1: the root
	weight, wants, share float64
	demand               []float64 // queues demand nothing
}

type vector struct {
	name     string
	capacity []float64
	nodes    []node
	beyond   bool
}

func number(text string) float64 {
	if text == "-" {
		return math.Inf(1)
	}
	fraction, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}
	value, _ := fraction.Float64()
	return value
}

func numbers(words []string) []float64 {
	result := []float64{}
	for _, word := range words {
		result = append(result, number(word))
	}
	return result
}

func read(text string) []*vector {
	vectors := []*vector{}
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if words[0] == "vector" {
			vectors = append(vectors, &vector{name: words[1]})
			continue
		}
		now := vectors[len(vectors)-1]
		switch words[0] {
		case "capacity":
			now.capacity = numbers(words[1:])
		case "queue", "user":
			one := node{name: words[1], parent: -1, weight: number(words[3])}
			for k, other := range now.nodes {
				if other.name == words[2] {
					one.parent = k
				}
			}
			if words[0] == "user" {
				one.wants, one.demand = number(words[4]), numbers(words[5:len(words)-3])
				one.share = number(words[len(words)-1])
			}
			now.nodes = append(now.nodes, one)
		default:
			now.beyond = true // limits, quotas, priorities, shares of queues that do not add up
		}
	}
	return vectors
}

// Progressive filling of a tree of weights in doubles: dominant shares by node, 0 for queues.
func shares(capacity []float64, nodes []node) []float64 {
	left, share, unit := append([]float64{}, capacity...), make([]float64, len(nodes)), make([]float64, len(nodes))
	rising := map[int]bool{}
	for k, one := range nodes {
		for r, d := range one.demand {
			if d > 0 {
				unit[k] = math.Max(unit[k], d/capacity[r])
			}
		}
		if unit[k] > 0 && !math.IsInf(unit[k], 1) && one.wants > 0 {
			rising[k] = true
		}
	}
	for len(rising) > 0 {
		active, total, rate := make([]bool, len(nodes)), make([]float64, len(nodes)+1), make([]float64, len(nodes))
		for k := range rising {
			for at := k; at >= 0; at = nodes[at].parent {
				active[at] = true
			}
		}
		for k, one := range nodes {
			if active[k] {
				total[one.parent+1] += one.weight
			}
		}
		for k, one := range nodes { // parents stand above
			if active[k] {
				rate[k] = one.weight / total[one.parent+1]
				if one.parent >= 0 {
					rate[k] *= rate[one.parent]
				}
			}
		}
		speed, stop, step := make([]float64, len(left)), make([]float64, len(nodes)), math.Inf(1)
		for k := range nodes {
			if rising[k] {
				for r, d := range nodes[k].demand {
					speed[r] += rate[k] / unit[k] * d
				}
			}
		}
		for k := range rising { // time of its own want, or of a resource that it demands
			stop[k] = (nodes[k].wants*unit[k] - share[k]) / rate[k]
			for r, d := range nodes[k].demand {
				if d > 0 {
					stop[k] = math.Min(stop[k], left[r]/speed[r])
				}
			}
			step = math.Min(step, stop[k])
		}
		step = math.Max(step, 0)
		for r := range left {
			left[r] -= step * speed[r]
		}
		for k := range rising {
			share[k] += step * rate[k]
			if stop[k] <= step*(1+1e-12) {
				delete(rising, k)
			}
		}
	}
	return share
}

func main() {
	agree, differ, beyond := 0, 0, 0
	for _, file := range os.Args[1:] {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		for _, one := range read(string(text)) {
			if one.beyond {
				beyond++
				continue
			}
			wrong := ""
			for k, found := range shares(one.capacity, one.nodes) {
				if stated := one.nodes[k].share; math.Abs(found-stated) > 1e-9*stated {
					wrong = fmt.Sprintf("%s %s: %v, not %v", one.name, one.nodes[k].name, stated, found)
				}
			}
			if wrong == "" {
				agree++
			} else {
				differ++
				fmt.Println(wrong)
			}
		}
	}
	fmt.Printf("%d agree, %d differ, %d not tried\n", agree, differ, beyond)
	if differ > 0 {
		os.Exit(1)
	}
}
