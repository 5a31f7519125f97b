// Package session is what the programs here have in common: which cluster they speak to, and how they give up.
package session

import (
	"context"
	"flag"
	"fmt"
	"log"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Patience is how long a program waits for what a cluster does by itself.
const Patience = 30 * time.Second

// Session is one run of a program against one cluster.
type Session struct {
	Context   context.Context
	Config    *rest.Config
	Namespace string
}

// Open reads the flags that all programs take: -kubeconfig, -namespace and -content-type.
func Open() *Session {
	log.SetFlags(0)
	kubeconfig := flag.String("kubeconfig", "", "the kubeconfig of the cluster")
	namespace := flag.String("namespace", "default", "the namespace to work in")
	contentType := flag.String("content-type", "", "the form of request bodies of built-in kinds")
	flag.Parse()
	config := Must(clientcmd.BuildConfigFromFlags("", *kubeconfig))
	config.ContentType = *contentType
	// A program that tests a server should not wait for itself.
	config.QPS, config.Burst = 200, 400
	return &Session{context.Background(), config, *namespace}
}

// Must returns a value, or ends the program because of an error.
func Must[T any](value T, err error) T {
	Check(err)
	return value
}

// Check ends the program because of an error.
func Check(err error) {
	if err != nil {
		fail("%v", err)
	}
}

// Equal ends the program unless two values are equal.
func Equal(what string, got, want any) {
	if !reflect.DeepEqual(got, want) {
		fail("%s: got %#v, want %#v", what, got, want)
	}
}

// True ends the program unless something holds.
func True(what string, holds bool) {
	if !holds {
		fail("%s: this does not hold", what)
	}
}

// Eventually looks again and again until something holds, and ends the program when it does not in time.
func (s *Session) Eventually(what string, look func() (bool, error)) {
	condition := func(context.Context) (bool, error) { return look() }
	err := wait.PollUntilContextTimeout(s.Context, 50*time.Millisecond, Patience, true, condition)
	if err != nil {
		fail("%s: %v", what, err)
	}
}

func fail(format string, values ...any) {
	log.SetFlags(log.Lshortfile)
	// Two callers up is the line of the program that expected something else.
	_ = log.Output(3, fmt.Sprintf(format, values...))
	panic("the cluster did something else than expected")
}
