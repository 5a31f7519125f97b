package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"eagleray/tests/clients/go/session"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// watches follows changes by hand: from a version, with what there is first, for a time, and taken up again.
func watches(s *session.Session) {
	maps := clientset(s).CoreV1().ConfigMaps(s.Namespace)
	listed := session.Must(maps.List(s.Context, metav1.ListOptions{}))
	session.Must(maps.Create(s.Context, configMap("seen", nil), metav1.CreateOptions{}))
	session.Must(maps.Patch(s.Context, "seen", types.MergePatchType, []byte(`{"data":{"a":"1"}}`), metav1.PatchOptions{}))
	session.Check(maps.Delete(s.Context, "seen", metav1.DeleteOptions{}))
	from := session.Must(maps.Watch(s.Context, metav1.ListOptions{ResourceVersion: listed.ResourceVersion}))
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		event := <-from.ResultChan()
		session.Equal("event", event.Type, want)
		session.Equal("name", event.Object.(*corev1.ConfigMap).Name, "seen")
	}
	from.Stop()

	session.Must(maps.Create(s.Context, configMap("there", nil), metav1.CreateOptions{}))
	initial := session.Must(maps.Watch(s.Context, metav1.ListOptions{
		SendInitialEvents:    ptr.To(true),
		AllowWatchBookmarks:  true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		FieldSelector:        "metadata.name=there",
	}))
	session.Equal("what there is", (<-initial.ResultChan()).Type, watch.Added)
	end := <-initial.ResultChan()
	session.Equal("the end of what there is", end.Type, watch.Bookmark)
	session.Equal("annotation", end.Object.(*corev1.ConfigMap).Annotations[metav1.InitialEventsAnnotationKey], "true")
	initial.Stop()

	short := session.Must(maps.Watch(s.Context, metav1.ListOptions{TimeoutSeconds: ptr.To[int64](1)}))
	for range short.ResultChan() { // until the server ends it
	}

	retried := session.Must(watchtools.NewRetryWatcherWithContext(s.Context, listed.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return maps.Watch(ctx, options)
		},
	}))
	session.Equal("a watch that is taken up again", (<-retried.ResultChan()).Type, watch.Added)
	retried.Stop()
}

// informers keeps caches of three kinds up to date, and reads from them.
func informers(s *session.Session) {
	client := clientset(s)
	factory := clientgo.NewSharedInformerFactoryWithOptions(client, 0, clientgo.WithNamespace(s.Namespace))
	maps, pods, sets := factory.Core().V1().ConfigMaps(), factory.Core().V1().Pods(), factory.Apps().V1().ReplicaSets()
	var lock sync.Mutex
	seen := map[string]int{}
	count := func(what string) {
		lock.Lock()
		defer lock.Unlock()
		seen[what]++
	}
	session.Must(maps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { count("added") },
		UpdateFunc: func(any, any) { count("updated") },
		DeleteFunc: func(any) { count("deleted") },
	}))
	pods.Informer()
	sets.Informer()
	session.Must(client.CoreV1().ConfigMaps(s.Namespace).Create(s.Context, configMap("before", nil), metav1.CreateOptions{}))
	ctx, cancel := context.WithTimeout(s.Context, session.Patience)
	defer cancel()
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		session.True(fmt.Sprintf("the cache of %v is filled", kind), synced)
	}
	session.Must(maps.Lister().ConfigMaps(s.Namespace).Get("before"))

	session.Must(client.AppsV1().Deployments(s.Namespace).Create(s.Context, deployment("web", 2), metav1.CreateOptions{}))
	s.Eventually("the cache sees the Pods", func() (bool, error) {
		found, err := pods.Lister().Pods(s.Namespace).List(labels.SelectorFromSet(labels.Set{"app": "web"}))
		ready := 0
		for _, one := range found {
			if one.Status.Phase == corev1.PodRunning {
				ready++
			}
		}
		return ready == 2, err
	})
	all := client.CoreV1().ConfigMaps(s.Namespace)
	session.Must(all.Patch(s.Context, "before", types.MergePatchType, []byte(`{"data":{"a":"1"}}`), metav1.PatchOptions{}))
	session.Check(all.Delete(s.Context, "before", metav1.DeleteOptions{}))
	s.Eventually("the handler is told", func() (bool, error) {
		lock.Lock()
		defer lock.Unlock()
		return seen["updated"] > 0 && seen["deleted"] > 0, nil
	})
	_, err := maps.Lister().ConfigMaps(s.Namespace).Get("before")
	session.True("the cache has forgotten it", apierrors.IsNotFound(err))
	cancel()
	factory.Shutdown()
}

// follow prints a line for everything that an informer is told, until it is ended: restarts are the caller's affair.
func follow(s *session.Session) {
	factory := clientgo.NewSharedInformerFactoryWithOptions(clientset(s), 0, clientgo.WithNamespace(s.Namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	tell := func(what string, object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		one := object.(*corev1.ConfigMap)
		fmt.Fprintf(os.Stdout, "%s %s %s\n", what, one.Name, one.Data["value"])
	}
	session.Must(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { tell("added", object) },
		UpdateFunc: func(before, after any) {
			// A reflector that lists anew tells of everything; only what differs is news.
			if before.(*corev1.ConfigMap).ResourceVersion != after.(*corev1.ConfigMap).ResourceVersion {
				tell("updated", after)
			}
		},
		DeleteFunc: func(object any) { tell("deleted", object) },
	}))
	informer.Run(s.Context.Done())
}

// metadataOnly reads objects without their contents, as garbage collectors and caches of large objects do.
func metadataOnly(s *session.Session) {
	client := session.Must(metadata.NewForConfig(s.Config))
	full := clientset(s).CoreV1().ConfigMaps(s.Namespace)
	session.Must(full.Create(s.Context, configMap("large", map[string]string{"a": "1"}), metav1.CreateOptions{}))
	some := client.Resource(configMaps).Namespace(s.Namespace)
	one := session.Must(some.Get(s.Context, "large", metav1.GetOptions{}))
	session.True("it has a uid", one.UID != "")
	listed := session.Must(some.List(s.Context, metav1.ListOptions{FieldSelector: "metadata.name=large"}))
	session.Equal("uid in a list", listed.Items[0].UID, one.UID)
	labelled := session.Must(some.Patch(s.Context, "large", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{}))
	session.Equal("labels", labelled.Labels, map[string]string{"x": "y"})
	session.Equal("the data stays", session.Must(full.Get(s.Context, "large", metav1.GetOptions{})).Data["a"], "1")

	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, s.Namespace, nil)
	informer := factory.ForResource(configMaps)
	ctx, cancel := context.WithTimeout(s.Context, session.Patience)
	defer cancel()
	go informer.Informer().Run(ctx.Done())
	session.True("the cache is filled", cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced))
	session.Must(informer.Lister().ByNamespace(s.Namespace).Get("large"))
	session.Check(some.Delete(s.Context, "large", metav1.DeleteOptions{}))
	s.Eventually("the cache sees it go", func() (bool, error) {
		_, err := informer.Lister().ByNamespace(s.Namespace).Get("large")
		return apierrors.IsNotFound(err), nil
	})
}

// election has two candidates: the first leads until it steps down, then the second does.
func election(s *session.Session) {
	client := clientset(s)
	leads := make(chan string, 2)
	run := func(ctx context.Context, name string) <-chan struct{} {
		done := make(chan struct{})
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: s.Namespace},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		go func() {
			defer close(done)
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: lock, ReleaseOnCancel: true,
				LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { leads <- name },
					OnStoppedLeading: func() {},
				},
			})
		}()
		return done
	}
	first, stepDown := context.WithCancel(s.Context)
	done := run(first, "first")
	session.Equal("leader", <-leads, "first")
	second, cancel := context.WithCancel(s.Context)
	ended := run(second, "second")
	select {
	case <-leads:
		session.True("there is one leader at a time", false)
	case <-time.After(time.Second):
	}
	stepDown()
	<-done
	session.Equal("leader after the first has stepped down", <-leads, "second")
	lease := session.Must(client.CoordinationV1().Leases(s.Namespace).Get(s.Context, "leader", metav1.GetOptions{}))
	session.Equal("holder", *lease.Spec.HolderIdentity, "second")
	session.Equal("transitions", *lease.Spec.LeaseTransitions, int32(1))
	cancel()
	<-ended
}
