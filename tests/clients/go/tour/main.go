// The tour takes client-go through a cluster: tour -kubeconfig FILE -namespace NAME PART. It ends with code 0 if the
// cluster did what Kubernetes does.
package main

import (
	"flag"
	"log"
	"maps"
	"slices"
	"strings"

	"eagleray/tests/clients/go/session"
)

var parts = map[string]func(*session.Session){
	"apply":     apply,
	"discovery": discover,
	"dynamic":   dynamically,
	"election":  election,
	"events":    events,
	"follow":    follow,
	"informers": informers,
	"metadata":  metadataOnly,
	"reviews":   reviews,
	"typed":     typed,
	"watches":   watches,
}

func main() {
	s := session.Open()
	part, known := parts[flag.Arg(0)]
	if !known {
		log.Fatalf("name one of the parts: %s", strings.Join(slices.Sorted(maps.Keys(parts)), ", "))
	}
	part(s)
}
