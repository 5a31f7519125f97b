// The operator is a usual one, built on controller-runtime: operator -kubeconfig FILE -namespace NAME. For each Boat it
// keeps a ConfigMap and a Deployment, tells in status and events how it goes, and writes a farewell when a Boat goes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"eagleray/tests/clients/go/operator/api"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	finalizer = "harbour.example/farewell"
	byCargo   = "spec.cargo"
)

func main() {
	namespace := flag.String("namespace", "default", "the namespace to look after")
	// The flag for the kubeconfig comes with controller-runtime.
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(flag.Lookup("kubeconfig").Value.String(), *namespace); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, namespace string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, api.AddToScheme} {
		if err := add(kinds); err != nil {
			return err
		}
	}
	lease, renew, retry := 3*time.Second, 2*time.Second, 500*time.Millisecond
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        kinds,
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "boats.harbour.example",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
	})
	if err != nil {
		return err
	}
	cargo := func(object client.Object) []string { return []string{object.(*api.Boat).Spec.Cargo} }
	if err := manager.GetFieldIndexer().IndexField(context.Background(), &api.Boat{}, byCargo, cargo); err != nil {
		return err
	}
	boats := &reconciler{manager.GetClient(), kinds, manager.GetEventRecorder("boats")}
	err = ctrl.NewControllerManagedBy(manager).
		For(&api.Boat{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}).
		Complete(boats)
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

type reconciler struct {
	client.Client
	kinds    *runtime.Scheme
	recorder events.EventRecorder
}

// Reconcile brings one boat closer to what it should be.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var boat api.Boat
	if err := r.Get(ctx, request.NamespacedName, &boat); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !boat.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.bidFarewell(ctx, &boat)
	}
	if controllerutil.AddFinalizer(&boat, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &boat) // whose news brings the next pass
	}
	if err := r.provideManifest(ctx, &boat); err != nil {
		return ctrl.Result{}, err
	}
	crew, err := r.provideCrew(ctx, &boat)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.tell(ctx, &boat, crew)
}

func (r *reconciler) provideManifest(ctx context.Context, boat *api.Boat) error {
	var alike api.BoatList
	if err := r.List(ctx, &alike, client.InNamespace(boat.Namespace), client.MatchingFields{byCargo: boat.Spec.Cargo}); err != nil {
		return err
	}
	manifest := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: boat.Name, Namespace: boat.Namespace}}
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, manifest, func() error {
		manifest.Data = map[string]string{"cargo": boat.Spec.Cargo, "alike": fmt.Sprint(len(alike.Items))}
		return controllerutil.SetControllerReference(boat, manifest, r.kinds)
	})
	if result == controllerutil.OperationResultCreated {
		r.recorder.Eventf(boat, manifest, corev1.EventTypeNormal, "ManifestWritten", "Writing", "The manifest lists %s", boat.Spec.Cargo)
	}
	return err
}

func (r *reconciler) provideCrew(ctx context.Context, boat *api.Boat) (*appsv1.Deployment, error) {
	labels := map[string]string{"boat": boat.Name}
	crew := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: boat.Name, Namespace: boat.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, crew, func() error {
		crew.Spec.Replicas = &boat.Spec.Crew
		if crew.CreationTimestamp.IsZero() {
			crew.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			crew.Spec.Template.Labels = labels
			crew.Spec.Template.Spec.Containers = []corev1.Container{{Name: "sailor", Image: "busybox"}}
		}
		return controllerutil.SetControllerReference(boat, crew, r.kinds)
	})
	return crew, err
}

func (r *reconciler) tell(ctx context.Context, boat *api.Boat, crew *appsv1.Deployment) error {
	before := boat.DeepCopy()
	boat.Status.Aboard = crew.Status.ReadyReplicas
	boat.Status.Phase = "Boarding"
	condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Boarding", ObservedGeneration: boat.Generation}
	if boat.Status.Aboard == boat.Spec.Crew {
		boat.Status.Phase = "Sailing"
		condition.Status, condition.Reason = metav1.ConditionTrue, "Sailing"
	}
	meta.SetStatusCondition(&boat.Status.Conditions, condition)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, boat, patch); err != nil {
		return err
	}
	if before.Status.Phase != boat.Status.Phase {
		r.recorder.Eventf(boat, nil, corev1.EventTypeNormal, boat.Status.Phase, "Counting", "%d of %d are aboard", boat.Status.Aboard, boat.Spec.Crew)
	}
	return nil
}

// bidFarewell leaves a note, which belongs to nobody, and lets the boat go.
func (r *reconciler) bidFarewell(ctx context.Context, boat *api.Boat) error {
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "farewell-" + boat.Name, Namespace: boat.Namespace}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, note, func() error { return nil }); err != nil {
		return err
	}
	if !controllerutil.ContainsFinalizer(boat, finalizer) {
		return nil
	}
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`))
	return client.IgnoreNotFound(r.Patch(ctx, boat, patch))
}
