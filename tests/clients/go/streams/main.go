// Streams runs commands in a Pod, forwards a port to it and reads its log: streams -kubeconfig FILE -namespace NAME POD
// spdy|websocket. The Pod's container `app` has a shell, prints `ready` and answers HTTP on port 8000.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"eagleray/tests/clients/go/session"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
)

const container = "app"

type pod struct {
	*session.Session
	client *kubernetes.Clientset
	name   string
	spdy   bool
}

func main() {
	s := session.Open()
	protocol := flag.Arg(1)
	if protocol != "spdy" && protocol != "websocket" {
		log.Fatal("name the Pod and how to speak to it: spdy or websocket")
	}
	p := &pod{s, session.Must(kubernetes.NewForConfig(s.Config)), flag.Arg(0), protocol == "spdy"}
	p.runsCommands()
	p.isGivenInput()
	p.hasTerminals()
	p.isForwarded()
	p.isLogged()
}

func (p *pod) url(part string) *url.URL {
	return p.client.CoreV1().RESTClient().Post().Resource("pods").Name(p.name).Namespace(p.Namespace).SubResource(part).URL()
}

// run executes a command, in the container `app` unless told otherwise, and returns how it ends.
func (p *pod) run(options corev1.PodExecOptions, streams remotecommand.StreamOptions) error {
	if options.Container == "" {
		options.Container = container
	}
	request := p.client.CoreV1().RESTClient().Post().Resource("pods").Name(p.name).Namespace(p.Namespace).
		SubResource("exec").VersionedParams(&options, scheme.ParameterCodec)
	var executor remotecommand.Executor
	var err error
	if p.spdy {
		executor, err = remotecommand.NewSPDYExecutor(p.Config, "POST", request.URL())
	} else {
		executor, err = remotecommand.NewWebSocketExecutor(p.Config, "GET", request.URL().String())
	}
	session.Check(err)
	ctx, cancel := context.WithTimeout(p.Context, session.Patience)
	defer cancel()
	return executor.StreamWithContext(ctx, streams)
}

func (p *pod) runsCommands() {
	var out, complaints bytes.Buffer
	err := p.run(
		corev1.PodExecOptions{Command: []string{"sh", "-c", "echo out; echo err >&2; exit 7"}, Stdout: true, Stderr: true},
		remotecommand.StreamOptions{Stdout: &out, Stderr: &complaints},
	)
	var ended utilexec.CodeExitError
	session.True(fmt.Sprintf("a code is an error: %v", err), errors.As(err, &ended))
	session.Equal("exit code", ended.Code, 7)
	session.Equal("output", out.String(), "out\n")
	session.Equal("complaints", complaints.String(), "err\n")

	err = p.run(
		corev1.PodExecOptions{Command: []string{"no-such-program"}, Stdout: true, Stderr: true},
		remotecommand.StreamOptions{Stdout: io.Discard, Stderr: io.Discard},
	)
	session.True("a program that is not there", err != nil)
	err = p.run(
		corev1.PodExecOptions{Container: "nobody", Command: []string{"true"}, Stdout: true},
		remotecommand.StreamOptions{Stdout: io.Discard},
	)
	session.True("a container that is not there", err != nil && strings.Contains(err.Error(), "nobody"))
}

func (p *pod) isGivenInput() {
	// More than any window or buffer on the way holds.
	given := bytes.Repeat([]byte("all the way there and back again\n"), 100_000)
	var out bytes.Buffer
	session.Check(p.run(
		corev1.PodExecOptions{Command: []string{"cat"}, Stdin: true, Stdout: true},
		remotecommand.StreamOptions{Stdin: bytes.NewReader(given), Stdout: &out},
	))
	session.True("what goes in comes out", bytes.Equal(out.Bytes(), given))
}

func (p *pod) hasTerminals() {
	var out bytes.Buffer
	session.Check(p.run(
		corev1.PodExecOptions{Command: []string{"sh", "-c", "sleep 0.5; stty size"}, TTY: true, Stdin: true, Stdout: true},
		remotecommand.StreamOptions{Stdin: strings.NewReader(""), Stdout: &out, Tty: true, TerminalSizeQueue: &sizes{}},
	))
	session.Equal("the size of the terminal", strings.TrimSpace(out.String()), "33 77")
}

// sizes says once how large the terminal is.
type sizes struct{ said bool }

func (s *sizes) Next() *remotecommand.TerminalSize {
	if s.said {
		return nil
	}
	s.said = true
	return &remotecommand.TerminalSize{Width: 77, Height: 33}
}

func (p *pod) isForwarded() {
	var dialer httpstream.Dialer
	if p.spdy {
		transport, upgrader, err := spdy.RoundTripperFor(p.Config)
		session.Check(err)
		dialer = spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", p.url("portforward"))
	} else {
		dialer = session.Must(portforward.NewSPDYOverWebsocketDialer(p.url("portforward"), p.Config))
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder := session.Must(portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:8000"}, stop, ready, io.Discard, os.Stderr))
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		session.Check(err)
	case <-time.After(session.Patience):
		session.True("the port is forwarded in time", false)
	}
	local := session.Must(forwarder.GetPorts())[0].Local
	for range 3 { // connections one after another share what is underneath
		answer := session.Must(http.Get(fmt.Sprintf("http://127.0.0.1:%d/", local)))
		body := session.Must(io.ReadAll(answer.Body))
		session.Check(answer.Body.Close())
		session.True("the Pod answers", strings.Contains(string(body), "hello"))
		http.DefaultClient.CloseIdleConnections()
	}
	close(stop)
	session.Check(<-ended)
}

func (p *pod) isLogged() {
	ctx, cancel := context.WithTimeout(p.Context, session.Patience)
	defer cancel()
	stream := session.Must(p.client.CoreV1().Pods(p.Namespace).GetLogs(p.name, &corev1.PodLogOptions{Container: container, Follow: true}).Stream(ctx))
	line := session.Must(bufio.NewReader(stream).ReadString('\n'))
	session.Equal("the first line of the log", line, "ready\n")
	session.Check(stream.Close())
}
